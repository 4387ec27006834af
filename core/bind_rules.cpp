// The gate of axis-aligned trees.
#include "bind.hpp"
#include "rule_gate.hpp"

namespace svmosaic {
namespace {

// Children come after their parents and inside their tree, so that no walk can leave the arrays or go round.
void require_trees(const Vector<const int32_t>& feature, const Vector<const double>& threshold,
                   const Vector<const int32_t>& left, const Vector<const int32_t>& roots, int64_t n_tiles,
                   int64_t n_features) {
  const int64_t n_nodes = feature.shape(0), n_trees = roots.shape(0);
  require(n_trees >= 1 && n_nodes >= 1, "at least one tree is needed");
  require_length(threshold.shape(0), n_nodes, "threshold must have one entry per node");
  require_length(left.shape(0), n_nodes, "left must have one entry per node");
  require(roots.data()[0] == 0, "the first tree must begin at node 0");
  for (int64_t t = 0; t < n_trees; ++t) {
    const int64_t begin = roots.data()[t], end = t + 1 < n_trees ? roots.data()[t + 1] : n_nodes;
    require(begin >= 0 && begin < end && end <= n_nodes, "every tree must have a node, and trees must follow each other");
    for (int64_t i = begin; i < end; ++i) {
      const int64_t f = feature.data()[i], l = left.data()[i];
      if (f < 0) {
        require(l >= 0 && l < n_tiles, "a leaf must name a tile");
      } else {
        require(f < n_features, "a node must ask for a feature of the rows");
        require(l > i && l + 1 < end, "children must come after their parent, in the same tree");
        require(threshold.data()[i] == threshold.data()[i], "a threshold must be a number");
      }
    }
  }
}

template <class T>
void bind_rule_gate(nb::module_& m, const char* name) {
  nb::class_<RuleGate<T>, Gate<T>>(m, name, "The leaves of a row in axis-aligned trees.")
      .def("__init__",
           [](RuleGate<T>* self, Vector<const int32_t> feature, Vector<const double> threshold,
              Vector<const int32_t> left, Vector<const int32_t> roots, int64_t n_tiles, int64_t n_features) {
             require_trees(feature, threshold, left, roots, n_tiles, n_features);
             new (self) RuleGate<T>(feature.data(), threshold.data(), left.data(), feature.shape(0), roots.data(),
                                    roots.shape(0), n_tiles, n_features);
           },
           nb::arg("feature"), nb::arg("threshold"), nb::arg("left"), nb::arg("roots"), nb::arg("n_tiles"),
           nb::arg("n_features"));
}

}  // namespace

void bind_rules(nb::module_& m) {
  bind_rule_gate<float>(m, "RuleGateF32");
  bind_rule_gate<double>(m, "RuleGateF64");
}

}  // namespace svmosaic

// Softmax gates and the E-step of the mixtures.
#include "bind.hpp"
#include "mixture.hpp"

namespace svmosaic {
namespace {

struct TreeHandle {
  SoftmaxTree tree;
  int64_t n_features;
  nb::object owners;
};

void check_tree(const RowsHandle& rows, const TreeHandle& gate) {
  require(rows.n_features() == gate.n_features, "rows and gate must have the same number of features");
}

// A NumPy array that owns what the vectors of the pieces hold, end to end.
template <class T, class Get>
nb::object joined(const std::vector<PairsOfPiece>& pieces, const Get& get) {
  size_t size = 0;
  for (const auto& piece : pieces) size += get(piece).size();
  T* data = new T[size];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  T* end = data;
  for (const auto& piece : pieces) end = std::copy(get(piece).begin(), get(piece).end(), end);
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

}  // namespace

void bind_mixture(nb::module_& m) {
  nb::class_<TreeHandle>(m, "SoftmaxTree", "A gate: softmaxes of affine logits among siblings, multiplied down a tree.")
      .def("__init__",
           [](TreeHandle* self, Matrix<const double> plane, Vector<const double> offset, Vector<const double> log_prior,
              Vector<const int32_t> parent, Vector<const int32_t> leaf, bool inside) {
             const int64_t n_nodes = plane.shape(0), n_leaves = leaf.shape(0);
             require(plane.shape(1) >= 1, "a plane has a number for each feature and one more");
             require_tree(n_nodes, offset, log_prior, parent, leaf);
             const int64_t n_features = static_cast<int64_t>(plane.shape(1)) - 1;
             new (self) TreeHandle{SoftmaxTree{Planes(plane.data(), n_nodes, n_features, 0.0), offset.data(),
                                               log_prior.data(), parent.data(), leaf.data(), n_nodes, n_leaves, inside},
                                   n_features, nb::make_tuple(offset, log_prior, parent, leaf)};
           },
           nb::arg("plane"), nb::arg("offset"), nb::arg("log_prior"), nb::arg("parent"), nb::arg("leaf"),
           nb::arg("inside"));

  m.def(
      "gate_log_weights",
      [](const RowsHandle& rows, const TreeHandle& gate, Matrix<double> out, int n_threads) {
        check_tree(rows, gate);
        require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                    static_cast<int64_t>(out.shape(1)) == gate.tree.n_leaves,
                "out must have shape (n_rows, n_leaves)");
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) { gate_log_weights(x, gate.tree, out.data(), n_threads); });
      },
      nb::arg("rows"), nb::arg("gate"), nb::arg("out"), nb::arg("n_threads") = 1, "out[i, j] = log g_j(x_i).");

  m.def(
      "e_step",
      [](const RowsHandle& rows, const TreeHandle* gate, std::optional<Matrix<const double>> given,
         Array<const double, nb::ndim<3>> tiles, Matrix<const int8_t> y, double label_weight, double drop,
         Vector<double> log_likelihood, int n_threads) {
        const int64_t n = rows.n_rows(), n_experts = tiles.shape(0), n_outputs = tiles.shape(1);
        require((gate != nullptr) != given.has_value(), "either a gate or its log weights must be given");
        if (gate) {
          check_tree(rows, *gate);
          require_length(gate->tree.n_leaves, n_experts, "gate and tiles must have as many leaves as experts");
        } else {
          require(static_cast<int64_t>(given->shape(0)) == n && static_cast<int64_t>(given->shape(1)) == n_experts,
                  "given must have shape (n_rows, n_experts)");
        }
        require(static_cast<int64_t>(tiles.shape(2)) == rows.n_features() + 1,
                "tiles must have shape (n_experts, n_outputs, n_features + 1)");
        require(static_cast<int64_t>(y.shape(0)) == n && static_cast<int64_t>(y.shape(1)) == n_outputs,
                "y must have shape (n_rows, n_outputs)");
        require_length(log_likelihood.shape(0), n, "log_likelihood must have one entry per row");
        const double bias = rows.visit([](const auto& x) { return x.bias; });
        const Experts experts{Planes(tiles.data(), n_experts * n_outputs, rows.n_features(), bias), n_experts,
                              n_outputs, label_weight};
        std::vector<PairsOfPiece> pieces;
        {
          nb::gil_scoped_release release;
          pieces = rows.visit([&](const auto& x) {
            return e_step(x, gate ? &gate->tree : nullptr, given ? given->data() : nullptr, experts, y.data(), drop,
                          log_likelihood.data(), n_threads);
          });
        }
        return nb::make_tuple(joined<int32_t>(pieces, [](const auto& p) -> const auto& { return p.count; }),
                              joined<int32_t>(pieces, [](const auto& p) -> const auto& { return p.expert; }),
                              joined<double>(pieces, [](const auto& p) -> const auto& { return p.q; }));
      },
      nb::arg("rows"), nb::arg("gate").none(), nb::arg("given").none(), nb::arg("tiles"), nb::arg("y"),
      nb::arg("label_weight"), nb::arg("drop"), nb::arg("log_likelihood"), nb::arg("n_threads") = 1,
      "Responsibilities of at least `drop`, as (pairs per row, expert, q); fills the rows' log likelihoods.");

  m.def(
      "gate_slope",
      [](const RowsHandle& rows, const TreeHandle& gate, Vector<const int64_t> offsets, Vector<const int32_t> expert,
         Vector<const double> q, Vector<const double> weight, Matrix<double> slope, int n_threads) {
        check_tree(rows, gate);
        const int64_t n = rows.n_rows(), n_pairs = expert.shape(0);
        require_length(offsets.shape(0), n + 1, "offsets must have one entry per row, and one more");
        require(offsets.data()[0] == 0 && offsets.data()[n] == n_pairs, "offsets must run from 0 to the number of pairs");
        for (int64_t i = 0; i < n; ++i)
          require(offsets.data()[i] <= offsets.data()[i + 1], "offsets must not decrease");
        for (int64_t p = 0; p < n_pairs; ++p)
          require(expert.data()[p] >= 0 && expert.data()[p] < gate.tree.n_leaves, "an expert is out of range");
        require_length(q.shape(0), n_pairs, "q must have one entry a pair");
        require_length(weight.shape(0), n, "weight must have one entry per row");
        require(static_cast<int64_t>(slope.shape(0)) == gate.tree.n_nodes &&
                    static_cast<int64_t>(slope.shape(1)) == rows.n_features() + 1,
                "slope must have shape (n_nodes, n_features + 1)");
        nb::gil_scoped_release release;
        return rows.visit([&](const auto& x) {
          return gate_slope(x, gate.tree, Pairs{offsets.data(), expert.data(), q.data()}, weight.data(), slope.data(),
                            n_threads);
        });
      },
      nb::arg("rows"), nb::arg("gate"), nb::arg("offsets"), nb::arg("expert"), nb::arg("q"), nb::arg("weight"),
      nb::arg("slope"), nb::arg("n_threads") = 1,
      "Returns - sum_i weight_i sum_j q_ij log g_j(x_i), and writes its slope by the nodes' planes and offsets.");
}

}  // namespace svmosaic

// Gates, one class for each kind and precision, all of them a `Gate` to the scorer; and sums of Gaussian kernels.
#include <nanobind/stl/string.h>

#include "bind.hpp"
#include "curved_gate.hpp"
#include "distance_gate.hpp"
#include "gaussian_gate.hpp"
#include "kernel_sums.hpp"
#include "projected_gate.hpp"
#include "scaled_gate.hpp"
#include "score.hpp"
#include "several_gates.hpp"
#include "softmax_gate.hpp"

namespace svmosaic {
namespace {

Coding coding_of(const std::string& name) {
  if (name == "nearest") return Coding::nearest;
  if (name == "inverse") return Coding::inverse;
  if (name == "softmax") return Coding::softmax;
  if (name == "llc") return Coding::llc;
  if (name == "lle") return Coding::lle;
  if (name == "kernel") return Coding::kernel;
  throw std::invalid_argument("unknown coding: " + name);
}

Covariance covariance_of(const std::string& name) {
  if (name == "full") return Covariance::full;
  if (name == "diag") return Covariance::diag;
  if (name == "isotropic") return Covariance::isotropic;
  throw std::invalid_argument("unknown covariance: " + name);
}

const double* pointer(const std::optional<Vector<const double>>& array, int64_t n, const char* message) {
  if (!array) return nullptr;
  require_length(array->shape(0), n, message);
  return array->data();
}

template <class T>
void bind_base(nb::module_& m, const char* name) {
  nb::class_<Gate<T>>(m, name, "To which tiles a row belongs, and how much.")
      .def(
          "code",
          [](const Gate<T>& gate, const RowsHandle& rows, Matrix<int32_t> tile, Matrix<double> weight, int n_threads) {
            const int64_t n = rows.n_rows();
            require(static_cast<int64_t>(tile.shape(0)) == n && static_cast<int64_t>(tile.shape(1)) == gate.width,
                    "tile must have shape (n_rows, width)");
            require(static_cast<int64_t>(weight.shape(0)) == n && static_cast<int64_t>(weight.shape(1)) == gate.width,
                    "weight must have shape (n_rows, width)");
            with_rows<T>(rows, gate.n_features, gate.cost(),
                         [&](const auto& x) { code_all(gate, x, tile.data(), weight.data(), n_threads); });
          },
          nb::arg("rows"), nb::arg("tile").noconvert(), nb::arg("weight").noconvert(), nb::arg("n_threads") = 1);
}

template <class T>
void bind_distance(nb::module_& m, const char* name) {
  nb::class_<DistanceGate<T>, Gate<T>>(m, name, "Tiles and weights of a row by its distance to centres.")
      .def("__init__",
           [](DistanceGate<T>* self, const std::string& coding, Matrix<const double> centers, int64_t width,
              double scale, std::optional<Vector<const double>> log_prior,
              std::optional<Vector<const double>> factor) {
             const int64_t n = centers.shape(0), d = centers.shape(1);
             const Coding kind = coding_of(coding);
             require(n >= 1, "at least one centre is needed");
             require(width >= 1 && width <= n, "width must be between 1 and the number of centres");
             require(kind != Coding::nearest || width == 1, "the nearest centre is one");
             new (self) DistanceGate<T>(kind, centers.data(), n, d, width, scale,
                                        pointer(log_prior, n, "log_prior must have one entry a centre"),
                                        pointer(factor, n, "factor must have one entry a centre"));
           },
           nb::arg("coding"), nb::arg("centers"), nb::arg("width"), nb::arg("scale"), nb::arg("log_prior").none(),
           nb::arg("factor").none());
}

template <class T>
void bind_softmax(nb::module_& m, const char* name) {
  nb::class_<SoftmaxGate<T>, Gate<T>>(m, name, "Softmaxes among siblings, multiplied down a tree.")
      .def("__init__",
           [](SoftmaxGate<T>* self, Matrix<const double> plane, Vector<const double> offset,
              Vector<const double> origin, Vector<const double> log_prior, Vector<const int32_t> parent,
              Vector<const int32_t> leaf, bool inside) {
             const int64_t n_nodes = plane.shape(0), d = plane.shape(1), n_leaves = leaf.shape(0);
             require_tree(n_nodes, offset, log_prior, parent, leaf);
             require_length(origin.shape(0), d, "origin must have one entry per feature");
             new (self) SoftmaxGate<T>(plane.data(), offset.data(), origin.data(), log_prior.data(), parent.data(),
                                       leaf.data(), n_nodes, n_leaves, d, inside);
           },
           nb::arg("plane"), nb::arg("offset"), nb::arg("origin"), nb::arg("log_prior"), nb::arg("parent"),
           nb::arg("leaf"), nb::arg("inside"), "Planes and offsets are those of rows less the origin.");
}

template <class T>
void bind_gaussian(nb::module_& m, const char* name) {
  nb::class_<GaussianGate<T>, Gate<T>>(m, name, "The posterior of a mixture of Gaussians.")
      .def("__init__",
           [](GaussianGate<T>* self, const std::string& covariance, Matrix<const double> means,
              Vector<const double> factors, Vector<const double> log_weight) {
             const int64_t n = means.shape(0), d = means.shape(1);
             const Covariance kind = covariance_of(covariance);
             require(n >= 1, "at least one Gaussian is needed");
             require_length(factors.shape(0), n * (kind == Covariance::full ? d * d : kind == Covariance::diag ? d : 1),
                            "factors must have a matrix, a vector or a number per tile");
             require_length(log_weight.shape(0), n, "log_weight must have one entry per tile");
             new (self) GaussianGate<T>(kind, means.data(), factors.data(), log_weight.data(), n, d);
           },
           nb::arg("covariance"), nb::arg("means"), nb::arg("factors"), nb::arg("log_weight"),
           "log_weight: log prior plus log determinant of the factor.")
      .def(
          "log_joint",
          [](const GaussianGate<T>& gate, const RowsHandle& rows, Matrix<double> out, int n_threads) {
            require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                        static_cast<int64_t>(out.shape(1)) == gate.n_tiles,
                    "out must have shape (n_rows, n_tiles)");
            with_rows<T>(rows, gate.n_features, gate.cost(),
                         [&](const auto& x) { log_joint_all(gate, x, out.data(), n_threads); });
          },
          nb::arg("rows"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "out[i, j] = log_weight_j - |F_j^T (x_i - mu_j)|^2 / 2");
}

template <class T>
void bind_projected(nb::module_& m, const char* name) {
  nb::class_<ProjectedGate<T>, Gate<T>>(m, name, "Another gate, of the projection of a row.")
      .def("__init__",
           [](ProjectedGate<T>* self, Matrix<const double> projection, const Gate<T>& inner) {
             require_length(projection.shape(0), inner.n_features, "the inner gate must see the components");
             new (self) ProjectedGate<T>(projection.data(), projection.shape(0), projection.shape(1), inner);
           },
           nb::arg("projection"), nb::arg("inner"), nb::keep_alive<1, 3>());
}

template <class T>
void bind_curved(nb::module_& m, const char* name) {
  nb::class_<CurvedGate<T>, Gate<T>>(m, name, "Another gate, of the projection of a row's piecewise-linear features.")
      .def("__init__",
           [](CurvedGate<T>* self, Vector<const double> center, Vector<const double> scale,
              Vector<const int32_t> column, Vector<const int32_t> start, Vector<const double> knot, bool zero_is_zero,
              Matrix<const double> projection, const Gate<T>& inner) {
             const int64_t d = center.shape(0), n_curves = column.shape(0);
             check_curves(d, scale, column, start, knot);
             const std::vector<double> none(d), kept(knot.shape(0), 1.0);
             Curves<T> curves(Pieces<T>(center.data(), scale.data(), none.data(), none.data(), d, column.data(),
                                        start.data(), n_curves, knot.data(), kept.data()),
                              zero_is_zero);
             require_length(projection.shape(0), inner.n_features, "the inner gate must see the components");
             require_length(projection.shape(1), curves.n_features(), "projection and curves do not belong together");
             new (self) CurvedGate<T>(std::move(curves), projection.data(), projection.shape(0), inner);
           },
           nb::arg("center"), nb::arg("scale"), nb::arg("column"), nb::arg("start"), nb::arg("knot"),
           nb::arg("zero_is_zero"), nb::arg("projection"), nb::arg("inner"), nb::keep_alive<1, 9>());
}

template <class T>
void bind_scaled(nb::module_& m, const char* name) {
  nb::class_<ScaledGate<T>, Gate<T>>(m, name, "Another gate, of scaled rows.")
      .def("__init__",
           [](ScaledGate<T>* self, std::optional<Vector<const double>> center, Vector<const double> factor,
              const Gate<T>& inner) {
             require_length(factor.shape(0), inner.n_features, "factor must have one entry per feature");
             new (self) ScaledGate<T>(pointer(center, inner.n_features, "center must have one entry per feature"),
                                      factor.data(), inner);
           },
           nb::arg("center").none(), nb::arg("factor"), nb::arg("inner"), nb::keep_alive<1, 4>());
}

template <class T>
void bind_several(nb::module_& m, const char* name) {
  // The list keeps the gates alive, and nobody else has it.
  nb::class_<SeveralGates<T>, Gate<T>>(m, name, "Several gates as one.")
      .def("__init__",
           [](SeveralGates<T>* self, nb::list gates, Vector<const double> factor) {
             require_length(factor.shape(0), gates.size(), "factor must have one entry per gate");
             std::vector<const Gate<T>*> found;
             int64_t n_features = -1;
             for (nb::handle gate : gates) {
               found.push_back(gate.is_none() ? nullptr : nb::cast<const Gate<T>*>(gate));
               if (!found.back()) continue;
               require(n_features < 0 || found.back()->n_features == n_features,
                       "all gates must have the same number of features");
               n_features = found.back()->n_features;
             }
             require(n_features >= 0, "at least one gate must have more than a single tile");
             new (self) SeveralGates<T>(std::move(found), factor.data(), n_features);
           },
           nb::arg("gates"), nb::arg("factor"), nb::keep_alive<1, 2>());
}

void bind_kernels(nb::module_& m) {
  nb::class_<KernelBank>(m, "KernelBank", "Gaussian kernels, as planes over rows less an origin and their squares.")
      .def("__init__",
           [](KernelBank* self, Matrix<const double> planes, Vector<const double> offset, Vector<const double> origin,
              Vector<const int64_t> starts) {
             const int64_t n = planes.shape(0), d = origin.shape(0), n_groups = int64_t(starts.shape(0)) - 1;
             const int64_t n_inputs = planes.shape(1);
             require(n >= 1 && d >= 1, "at least one kernel and one feature are needed");
             require(n_inputs == d + 1 || n_inputs == 2 * d, "planes must have n_features + 1 or twice n_features numbers");
             require_length(offset.shape(0), n, "offset must have one entry a kernel");
             require(n_groups >= 1 && starts.data()[0] == 0 && starts.data()[n_groups] == n,
                     "starts must run from 0 to the number of kernels");
             for (int64_t g = 0; g < n_groups; ++g)
               require(starts.data()[g] <= starts.data()[g + 1], "starts must not decrease");
             new (self) KernelBank(planes.data(), offset.data(), origin.data(), starts.data(), n, d, n_groups,
                                   n_inputs == 2 * d);
           },
           nb::arg("planes"), nb::arg("offset"), nb::arg("origin"), nb::arg("starts"))
      .def(
          "sums",
          [](const KernelBank& bank, const RowsHandle& rows, Matrix<const double> coef, Matrix<double> out,
             int n_threads) {
            const int64_t n_outputs = coef.shape(0);
            require(rows.n_features() == bank.n_features, "the rows have another number of features");
            require_length(coef.shape(1), bank.n_kernels, "coef must have shape (n_outputs, n_kernels)");
            require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                        static_cast<int64_t>(out.shape(1)) == n_outputs,
                    "out must have shape (n_rows, n_outputs)");
            nb::gil_scoped_release release;
            rows.visit_plain([&](const auto& x) {
              for_kernel_rows(bank, x, n_threads, [&](int64_t begin, int64_t n, KernelScratch& scratch) {
                kernel_sums_block(bank, n, coef.data(), n_outputs, scratch, out.data() + begin * n_outputs);
              });
            });
          },
          nb::arg("rows"), nb::arg("coef"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "out[n, c] = sum_i coef[c, i] exp(l_ni)")
      .def(
          "log_sums",
          [](const KernelBank& bank, const RowsHandle& rows, Matrix<double> out, int n_threads) {
            require(rows.n_features() == bank.n_features, "the rows have another number of features");
            require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                        static_cast<int64_t>(out.shape(1)) == bank.n_groups,
                    "out must have shape (n_rows, n_groups)");
            nb::gil_scoped_release release;
            rows.visit_plain([&](const auto& x) {
              for_kernel_rows(bank, x, n_threads, [&](int64_t begin, int64_t n, KernelScratch& scratch) {
                kernel_log_sums_block(bank, n, scratch, out.data() + begin * bank.n_groups);
              });
            });
          },
          nb::arg("rows"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "out[n, g] = log sum of exp(l_ni) over the kernels i of group g");
}

}  // namespace

void bind_gates(nb::module_& m) {
  bind_base<float>(m, "GateF32");
  bind_base<double>(m, "GateF64");
  bind_distance<float>(m, "DistanceGateF32");
  bind_distance<double>(m, "DistanceGateF64");
  bind_softmax<float>(m, "SoftmaxGateF32");
  bind_softmax<double>(m, "SoftmaxGateF64");
  bind_gaussian<float>(m, "GaussianGateF32");
  bind_gaussian<double>(m, "GaussianGateF64");
  bind_projected<float>(m, "ProjectedGateF32");
  bind_projected<double>(m, "ProjectedGateF64");
  bind_curved<float>(m, "CurvedGateF32");
  bind_curved<double>(m, "CurvedGateF64");
  bind_scaled<float>(m, "ScaledGateF32");
  bind_scaled<double>(m, "ScaledGateF64");
  bind_several<float>(m, "SeveralGatesF32");
  bind_several<double>(m, "SeveralGatesF64");
  bind_kernels(m);
}

}  // namespace svmosaic

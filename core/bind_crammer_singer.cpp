// The multiclass SVM of Crammer and Singer.
#include "bind.hpp"
#include "crammer_singer.hpp"

namespace svmosaic {
namespace {

template <class Real>
std::tuple<int64_t, double> descend(const RowsHandle& rows, const DesignHandle& d, Vector<const int32_t> y,
                                    Vector<const double> cost, Vector<const double> curvature, Vector<int32_t> order,
                                    Vector<uint64_t> random, Matrix<double> alpha, Array<Real, nb::ndim<3>> v,
                                    double target, int64_t max_epochs, double max_seconds) {
  const int64_t n = d.design.n_rows, n_classes = alpha.shape(1);
  check_design(rows, d);
  require_length(y.shape(0), n, "y must have one entry per row");
  require_length(cost.shape(0), n, "cost must have one entry per row");
  require_length(curvature.shape(0), n, "curvature must have one entry per row");
  require_length(alpha.shape(0), n, "alpha must have one line per row");
  require_length(random.shape(0), 4, "the random state is four words");
  require(n_classes >= 2, "at least two classes are needed");
  require(static_cast<int64_t>(v.shape(0)) == n_classes && static_cast<int64_t>(v.shape(1)) == d.design.n_blocks &&
              static_cast<int64_t>(v.shape(2)) == rows.n_features() + 1,
          "weights must have shape (n_classes, n_blocks, n_features + 1)");
  for (int64_t r = 0; r < n; ++r) require(y.data()[r] >= 0 && y.data()[r] < n_classes, "a label is out of range");
  for (size_t s = 0; s < order.shape(0); ++s)
    require(order.data()[s] >= 0 && order.data()[s] < n, "a row of the order is out of range");
  nb::gil_scoped_release release;
  const CrammerSingerReport report = rows.visit([&](const auto& x) -> CrammerSingerReport {
    using T = typename std::decay_t<decltype(x)>::value_type;
    if constexpr (sizeof(T) > sizeof(Real))
      throw std::invalid_argument("float64 rows need float64 weights");
    else
      return crammer_singer(x, d.design, y.data(), cost.data(), curvature.data(), n_classes, order.data(),
                            static_cast<int64_t>(order.shape(0)), random.data(), alpha.data(), v.data(), target,
                            max_epochs, max_seconds);
  });
  return {report.n_epochs, report.gap};
}

}  // namespace

void bind_crammer_singer(nb::module_& m) {
  m.def("crammer_singer", &descend<float>, nb::arg("rows"), nb::arg("design"), nb::arg("y"), nb::arg("cost"),
        nb::arg("curvature"), nb::arg("order").noconvert(), nb::arg("random").noconvert(),
        nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("target"), nb::arg("max_epochs"), nb::arg("max_seconds"),
        "Epochs of dual descent over the rows of the Crammer-Singer problem; returns (epochs, estimated gap).");
  m.def("crammer_singer", &descend<double>, nb::arg("rows"), nb::arg("design"), nb::arg("y"), nb::arg("cost"),
        nb::arg("curvature"), nb::arg("order").noconvert(), nb::arg("random").noconvert(),
        nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("target"), nb::arg("max_epochs"), nb::arg("max_seconds"));
}

}  // namespace svmosaic

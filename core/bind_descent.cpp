// Dual coordinate descent.
#include "bind.hpp"
#include "dual_descent.hpp"

namespace svmosaic {
namespace {

template <class Real>
std::tuple<int64_t, double> descend(const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> sign,
                                    std::optional<Vector<const double>> threshold, Vector<const double> cost, int power,
                                    Vector<const double> curvature, Vector<int32_t> order, DescentState& state,
                                    Vector<double> alpha, Matrix<Real> v, double aim, int64_t max_epochs,
                                    double max_seconds) {
  const int64_t n = d.design.n_rows;
  const Target target = make_target(n, sign, threshold, cost, power);
  require_length(curvature.shape(0), n, "curvature must have one entry per row");
  require_length(alpha.shape(0), n, "alpha must have one entry per row");
  require(state.n_active >= 0 && state.n_active <= static_cast<int64_t>(order.shape(0)),
          "state and order do not belong together");
  for (int64_t s = 0; s < state.n_active; ++s)
    require(order.data()[s] >= 0 && order.data()[s] < n, "order names a row that is not there");
  check_weights(rows, d, v);
  nb::gil_scoped_release release;
  const DescentReport report = rows.visit([&](const auto& x) -> DescentReport {
    using T = typename std::decay_t<decltype(x)>::value_type;
    if constexpr (sizeof(T) > sizeof(Real))
      throw std::invalid_argument("float64 rows need float64 weights");
    else
      return dual_descent(x, d.design, target, curvature.data(), order.data(), state, alpha.data(), v.data(), aim,
                          max_epochs, max_seconds);
  });
  return {report.n_epochs, report.gap};
}

}  // namespace

void bind_descent(nb::module_& m) {
  nb::class_<DescentState>(m, "DescentState", "What dual descent remembers between two calls.")
      .def("__init__",
           [](DescentState* self, Vector<const uint64_t> seed, int64_t n_active) {
             require_length(seed.shape(0), 4, "the seed is four words");
             new (self) DescentState{};
             std::copy(seed.data(), seed.data() + 4, self->random);
             self->n_active = n_active;
           },
           nb::arg("seed"), nb::arg("n_active"))
      .def("unshrink", &DescentState::unshrink, nb::arg("n"))
      .def_ro("n_active", &DescentState::n_active);

  m.def("dual_descent", &descend<float>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("cost"), nb::arg("power"), nb::arg("curvature"),
        nb::arg("order").noconvert(), nb::arg("state"), nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("aim"), nb::arg("max_epochs"), nb::arg("max_seconds"),
        "Epochs of dual coordinate descent; returns (epochs, estimated gap).");
  m.def("dual_descent", &descend<double>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("cost"), nb::arg("power"), nb::arg("curvature"),
        nb::arg("order").noconvert(), nb::arg("state"), nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("aim"), nb::arg("max_epochs"), nb::arg("max_seconds"));
}

}  // namespace svmosaic

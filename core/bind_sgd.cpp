// Stochastic gradient descent.
#include "bind.hpp"
#include "sgd.hpp"

namespace svmosaic {
namespace {

template <class Real>
void steps(const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> sign,
           std::optional<Vector<const double>> threshold, Vector<const double> reach, int power, bool free_bias,
           std::optional<Vector<const int32_t>> order, int64_t begin, int64_t end, double t0, int64_t skip,
           SgdState& state, Matrix<Real> v, std::optional<Matrix<Real>> average) {
  const int64_t n = d.design.n_rows;
  const Target target = make_target(n, sign, threshold, reach, power);
  require(0 <= begin && begin <= end && end <= (order ? static_cast<int64_t>(order->shape(0)) : n),
          "begin and end must lie within the order");
  if (order)
    for (int64_t s = begin; s < end; ++s)
      require(order->data()[s] >= 0 && order->data()[s] < n, "a row of the order is out of range");
  require(skip >= 1 && t0 > 0 && state.left >= 1 && state.left <= skip, "skip and state do not belong together");
  check_weights(rows, d, v);
  if (average) check_weights(rows, d, *average);
  nb::gil_scoped_release release;
  rows.visit([&](const auto& x) {
    using T = typename std::decay_t<decltype(x)>::value_type;
    if constexpr (sizeof(T) > sizeof(Real))
      throw std::invalid_argument("float64 rows need float64 weights");
    else
      sgd_steps(x, d.design, target, free_bias, order ? order->data() : nullptr, begin, end, t0, skip, state,
                v.data(), average ? average->data() : nullptr);
  });
}

}  // namespace

void bind_sgd(nb::module_& m) {
  nb::class_<SgdState>(m, "SgdState", "Where stochastic descent stands between two calls.")
      .def(nb::init<int64_t, int64_t, double, double>(), nb::arg("t"), nb::arg("left"), nb::arg("averaged"),
           nb::arg("share"))
      .def_ro("t", &SgdState::t)
      .def_ro("left", &SgdState::left)
      .def_ro("averaged", &SgdState::averaged)
      .def_ro("share", &SgdState::share);
  m.def("sgd_steps", &steps<float>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("reach"), nb::arg("power"), nb::arg("free_bias"), nb::arg("order").none(),
        nb::arg("begin"), nb::arg("end"), nb::arg("t0"), nb::arg("skip"), nb::arg("state"), nb::arg("weights").noconvert(),
        nb::arg("average").noconvert().none(), "One step of stochastic descent on each row order[begin .. end).");
  m.def("sgd_steps", &steps<double>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("reach"), nb::arg("power"), nb::arg("free_bias"), nb::arg("order").none(),
        nb::arg("begin"), nb::arg("end"), nb::arg("t0"), nb::arg("skip"), nb::arg("state"), nb::arg("weights").noconvert(),
        nb::arg("average").noconvert().none());
}

}  // namespace svmosaic

// Learning a gate with its tiles.
#include "bind.hpp"
#include "learner_anchors.hpp"
#include "learner_tree.hpp"

namespace svmosaic {
namespace {

template <class T>
Moving<T> moving(const Matrix<T>& value, const Matrix<T>& first, const Matrix<T>& second) {
  require(value.shape(0) == first.shape(0) && value.shape(1) == first.shape(1) && value.shape(0) == second.shape(0) &&
              value.shape(1) == second.shape(1),
          "a parameter and its moments must have the same shape");
  return {value.data(), first.data(), second.data()};
}

template <class T, class GatePart>
double learn_batches(Learner<T>& model, GatePart gate, const RowsHandle& rows, const int32_t* label,
                     const double* weight, const Vector<const int32_t>& order, int64_t batch_size, const double* rates,
                     const double* sharpness, int n_threads) {
  const int64_t n = order.shape(0);
  Batch<T> batch(model.shape);
  double loss = 0;
  rows.visit_plain([&](const auto& x) {
    if constexpr (std::is_same_v<typename std::decay_t<decltype(x)>::value_type, T>)
      for (int64_t b = 0, from = 0; from < n; ++b, from += batch_size) {
        if (sharpness) model.sharpness = sharpness[b];
        loss += learn_batch(model, gate, batch, x, label, weight, order.data() + from, std::min(batch_size, n - from),
                            rates[b], n_threads);
      }
    else
      throw std::invalid_argument("the rows have another precision");
  });
  return loss;
}

// One epoch over `order` in batches, with one learning rate a batch; returns the sum of the losses on the way. With a
// sharpness a batch, the gate is a tree of splits, else it is anchors.
template <class T>
double learn_epoch(const RowsHandle& rows, Vector<const int32_t> label, Vector<const double> weight,
                   Vector<const int32_t> order, int64_t batch_size, Vector<const double> rates, int64_t n_outputs,
                   int64_t width, bool learn_gate, double decay, double gate_rate,
                   std::optional<Vector<const double>> sharpness, Matrix<T> tiles, Matrix<T> tiles_first,
                   Matrix<T> tiles_second, Matrix<T> gate, Matrix<T> gate_first, Matrix<T> gate_second,
                   std::optional<Matrix<T>> projection, std::optional<Matrix<T>> projection_first,
                   std::optional<Matrix<T>> projection_second, Matrix<double> log_tau, Vector<double> idle_since,
                   Vector<double> clock, int n_threads) {
  require(batch_size >= 1, "batch_size must be at least 1");
  const int64_t n = order.shape(0), d = rows.n_features(), n_tiles = tiles.shape(0), n_batches = (n + batch_size - 1) / batch_size;
  const bool tree = sharpness.has_value();
  const int64_t p = static_cast<int64_t>(gate.shape(1)) - (tree ? 1 : 0);
  require(static_cast<int64_t>(rates.shape(0)) >= n_batches, "one rate a batch is needed");
  require(!tree || static_cast<int64_t>(sharpness->shape(0)) >= n_batches, "one sharpness a batch is needed");
  require(static_cast<int64_t>(gate.shape(0)) == n_tiles - (tree ? 1 : 0),
          "anchors must be as many as tiles, splits one less");
  require_length(label.shape(0), rows.n_rows(), "label must have one entry a row");
  require_length(weight.shape(0), rows.n_rows(), "weight must have one entry a row");
  for (int64_t i = 0; i < n; ++i)
    require(order.data()[i] >= 0 && order.data()[i] < rows.n_rows(), "order names a row that is not there");
  require(n_tiles >= 1 && width >= 1 && width <= n_tiles, "width must be between 1 and the number of tiles");
  require(static_cast<int64_t>(tiles.shape(1)) == n_outputs * (d + 1),
          "tiles must have shape (n_tiles, n_outputs * (n_features + 1))");
  require(log_tau.shape(0) == 1 && log_tau.shape(1) == 3, "log_tau must hold a value and its two moments");
  require_length(idle_since.shape(0), n_tiles, "idle_since must have one entry a tile");
  require_length(clock.shape(0), 2, "clock must have two entries");
  const bool projected = projection.has_value();
  if (projected) {
    require(projection_first && projection_second, "the projection needs its moments");
    require(static_cast<int64_t>(projection->shape(0)) == p && static_cast<int64_t>(projection->shape(1)) == d + 1,
            "projection must have shape (n_components, n_features + 1)");
  } else {
    require(p == d, "without a projection the gate has as many components as there are features");
  }
  Learner<T> model{{d, p, n_tiles, n_outputs, width, projected, learn_gate},
                   {},
                   moving(tiles, tiles_first, tiles_second),
                   moving(gate, gate_first, gate_second),
                   projected ? moving(*projection, *projection_first, *projection_second) : Moving<T>{},
                   {log_tau.data(), log_tau.data() + 1, log_tau.data() + 2},
                   1.0,
                   idle_since.data(),
                   clock.data()};
  model.options.decay = decay;
  model.options.gate_rate = gate_rate;
  nb::gil_scoped_release release;
  const double* sharp = tree ? sharpness->data() : nullptr;
  if (tree)
    return learn_batches(model, TreePart<T>{}, rows, label.data(), weight.data(), order, batch_size, rates.data(),
                         sharp, n_threads);
  return learn_batches(model, AnchorPart<T>{}, rows, label.data(), weight.data(), order, batch_size, rates.data(), sharp,
                       n_threads);
}

template <class T>
void bind_precision(nb::module_& m) {
  m.def("learn_epoch", &learn_epoch<T>, nb::arg("rows"), nb::arg("label"), nb::arg("weight"), nb::arg("order"),
        nb::arg("batch_size"), nb::arg("rates"), nb::arg("n_outputs"), nb::arg("width"), nb::arg("learn_gate"),
        nb::arg("decay"), nb::arg("gate_rate"), nb::arg("sharpness").none(), nb::arg("tiles").noconvert(), nb::arg("tiles_first").noconvert(),
        nb::arg("tiles_second").noconvert(), nb::arg("gate").noconvert(), nb::arg("gate_first").noconvert(),
        nb::arg("gate_second").noconvert(), nb::arg("projection").none().noconvert(),
        nb::arg("projection_first").none().noconvert(), nb::arg("projection_second").none().noconvert(),
        nb::arg("log_tau").noconvert(), nb::arg("idle_since").noconvert(), nb::arg("clock").noconvert(),
        nb::arg("n_threads") = 1, "Minibatch steps over `order`; returns the sum of the losses met on the way.");
}

}  // namespace

void bind_learner(nb::module_& m) {
  bind_precision<float>(m);
  bind_precision<double>(m);
}

}  // namespace svmosaic

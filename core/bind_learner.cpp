// Learning gates with their tiles.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "learner_anchors.hpp"

namespace svmosaic {
namespace {

template <class T>
using Cube = Array<T, nb::ndim<3>>;

LearnerLoss loss_of(const std::string& name) {
  if (name == "squared_hinge") return LearnerLoss::squared_hinge;
  if (name == "log_loss") return LearnerLoss::log_loss;
  if (name == "squared_error") return LearnerLoss::squared_error;
  if (name == "epsilon_insensitive") return LearnerLoss::epsilon_insensitive;
  if (name == "squared_epsilon_insensitive") return LearnerLoss::squared_epsilon_insensitive;
  if (name == "quantile") return LearnerLoss::quantile;
  if (name == "expectile") return LearnerLoss::expectile;
  throw std::invalid_argument("unknown loss: " + name);
}

// Value and moments of a parameter, stacked.
template <class T>
Moving<T> moving(T* data, int64_t size) {
  return {data, data + size, data + 2 * size};
}

// A learner that works on arrays of Python's, which it keeps alive.
template <class T>
struct GateLearner {
  Learner<T> model;
  nb::object owners;

  double epoch(const RowsHandle& rows, const Matrix<const T>& target, const Vector<const double>& weight,
               const Vector<const int32_t>& order, int64_t batch_size, const Vector<const double>& rates,
               bool learn_gate, int n_threads, double loss) const {
    const LearnerShape& s = model.shape;
    const int64_t n = order.shape(0), n_columns = target.shape(1);
    require(batch_size >= 1, "batch_size must be at least 1");
    require(rows.n_features() == s.n_features, "the rows have another number of features");
    require(static_cast<int64_t>(rates.shape(0)) >= (n + batch_size - 1) / batch_size, "one rate per batch is needed");
    require_length(target.shape(0), rows.n_rows(), "target must have one line per row");
    require_length(weight.shape(0), rows.n_rows(), "weight must have one entry per row");
    nb::gil_scoped_release release;
    for (int64_t i = 0; i < n; ++i)
      require(order.data()[i] >= 0 && order.data()[i] < rows.n_rows(), "order names a row that is not there");
    if (is_regression(model.options.loss)) {
      require_length(n_columns, s.n_outputs, "target must have one column per output");
    } else {
      require_length(n_columns, 1, "target must have one column of positions of classes");
      // Of the rows that are met: an epoch is cut into calls, and each would look at all rows.
      const T n_classes = static_cast<T>(std::max<int64_t>(2, s.n_outputs));
      for (int64_t i = 0; i < n; ++i) {
        const T value = target.data()[order.data()[i]];
        require(value >= 0 && value < n_classes, "target names a class that is not there");
      }
    }
    rows.visit([&](const auto& x) {
      if constexpr (std::is_same_v<typename std::decay_t<decltype(x)>::value_type, T>) {
        AnchorGates<T> gates(model);
        loss = learn_batches(model, gates, x, {target.data(), n_columns, weight.data()}, order.data(), n, batch_size,
                             rates.data(), learn_gate, n_threads, loss);
      } else {
        throw std::invalid_argument("the rows have another precision");
      }
    });
    return loss;
  }
};

template <class T>
void make_learner(GateLearner<T>* self, Cube<T> tiles, Cube<T> anchors, std::optional<Cube<T>> projection,
                  Matrix<double> log_tau, Vector<double> idle_since, Vector<double> clock,
                  const std::vector<int64_t>& first_tile, int64_t n_outputs, int64_t width, const std::string& loss,
                  const std::vector<double>& loss_parameter, double dropout, uint32_t seed, double decay,
                  double gate_rate) {
  const int64_t n_tiles = tiles.shape(1), size = tiles.shape(2), p = anchors.shape(2),
                n_gates = static_cast<int64_t>(first_tile.size()) - 1;
  require(n_outputs >= 1 && size % n_outputs == 0 && size / n_outputs >= 2,
          "tiles must have shape (3, n_tiles, n_outputs * (n_features + 1))");
  const int64_t d = size / n_outputs - 1;
  require(n_gates >= 1 && first_tile[0] == 0 && first_tile[n_gates] == n_tiles,
          "first_tile must run from 0 to the number of tiles");
  for (int64_t m = 0; m < n_gates; ++m)
    require(width >= 1 && first_tile[m + 1] - first_tile[m] >= width, "each gate needs at least `width` tiles");
  require(tiles.shape(0) == 3 && anchors.shape(0) == 3 && log_tau.shape(0) == 3,
          "parameters must be stacked with their two moments");
  require_length(anchors.shape(1), n_tiles, "anchors must be as many as tiles");
  require_length(log_tau.shape(1), n_gates, "log_tau must have one entry per gate");
  require_length(idle_since.shape(0), n_tiles, "idle_since must have one entry per tile");
  require_length(clock.shape(0), 2, "clock must have two entries");
  require(dropout >= 0 && dropout < 1, "dropout must be at least 0 and below 1");
  if (projection)
    require(projection->shape(0) == 3 && static_cast<int64_t>(projection->shape(1)) == n_gates * p &&
                static_cast<int64_t>(projection->shape(2)) == d + 1,
            "projection must have shape (3, n_gates * n_components, n_features + 1)");
  else
    require(p == d, "without a projection anchors have as many components as there are features");
  LearnerOptions options;
  options.loss = loss_of(loss);
  options.loss_parameter = loss_parameter;
  options.loss_parameter.resize(n_outputs, loss_parameter.empty() ? 0.0 : loss_parameter.back());
  options.dropout = {dropout, seed};
  options.decay = decay;
  options.gate_rate = gate_rate;
  new (self) GateLearner<T>{
      {{d, p, n_outputs, width, projection.has_value(), first_tile},
       options,
       moving(tiles.data(), n_tiles * size),
       moving(anchors.data(), n_tiles * p),
       projection ? moving(projection->data(), n_gates * p * (d + 1)) : Moving<T>{},
       moving(log_tau.data(), n_gates),
       idle_since.data(),
       clock.data()},
      nb::make_tuple(tiles, anchors, projection, log_tau, idle_since, clock)};
}

template <class T>
void bind_precision(nb::module_& m, const char* name) {
  nb::class_<GateLearner<T>>(m, name, "Gates and tiles that learn together. Their arrays are changed in place.")
      .def("__init__", &make_learner<T>, nb::kw_only(), nb::arg("tiles").noconvert(), nb::arg("anchors").noconvert(),
           nb::arg("projection").none().noconvert(), nb::arg("log_tau").noconvert(), nb::arg("idle_since").noconvert(),
           nb::arg("clock").noconvert(), nb::arg("first_tile"), nb::arg("n_outputs"), nb::arg("width"), nb::arg("loss"),
           nb::arg("loss_parameter"), nb::arg("dropout"), nb::arg("seed"), nb::arg("decay"), nb::arg("gate_rate"))
      .def("epoch", &GateLearner<T>::epoch, nb::arg("rows"), nb::arg("target"), nb::arg("weight"), nb::arg("order"),
           nb::arg("batch_size"), nb::arg("rates"), nb::arg("learn_gate") = true, nb::arg("n_threads") = 1, nb::arg("loss") = 0.0,
           "Minibatch steps over `order`, one rate per batch; returns `loss` plus the losses met on the way.");
}

}  // namespace

void bind_learner(nb::module_& m) {
  bind_precision<float>(m, "GateLearnerF32");
  bind_precision<double>(m, "GateLearnerF64");
}

}  // namespace svmosaic

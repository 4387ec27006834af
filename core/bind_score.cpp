// Gates and scoring.
#include <nanobind/stl/string.h>

#include "bind.hpp"
#include "score.hpp"

namespace svmosaic {
namespace {

using Cube = Array<const double, nb::ndim<3>>;

Coding coding_of(const std::string& name) {
  if (name == "nearest") return Coding::nearest;
  if (name == "inverse") return Coding::inverse;
  if (name == "softmax") return Coding::softmax;
  if (name == "llc") return Coding::llc;
  if (name == "lle") return Coding::lle;
  throw std::invalid_argument("unknown coding: " + name);
}

const double* pointer(const std::optional<Vector<const double>>& array, int64_t n, const char* message) {
  if (!array) return nullptr;
  require_length(array->shape(0), n, message);
  return array->data();
}

// A function of the rows whose precision is T; other rows are refused.
template <class T, class Function>
void with_rows(const RowsHandle& rows, int64_t n_features, Function&& function) {
  require(rows.n_features() == n_features, "the rows have another number of features");
  nb::gil_scoped_release release;
  rows.visit([&](const auto& x) {
    if constexpr (std::is_same_v<typename std::decay_t<decltype(x)>::value_type, T>)
      function(x);
    else
      throw std::invalid_argument("the rows have another precision");
  });
}

template <class T>
void bind_precision(nb::module_& m, const char* gate_name, const char* tiles_name) {
  nb::class_<Gate<T>>(m, gate_name, "Tiles and weights of a row by its distance to centres.")
      .def("__init__",
           [](Gate<T>* self, const std::string& coding, Matrix<const double> centers, int64_t width, double scale,
              std::optional<Vector<const double>> log_prior, std::optional<Vector<const double>> factor) {
             const int64_t n = centers.shape(0), d = centers.shape(1);
             const Coding kind = coding_of(coding);
             require(n >= 1, "at least one centre is needed");
             require(width >= 1 && width <= n, "width must be between 1 and the number of centres");
             require(kind != Coding::nearest || width == 1, "the nearest centre is one");
             new (self) Gate<T>(kind, centers.data(), n, d, width, scale,
                                pointer(log_prior, n, "log_prior must have one entry a centre"),
                                pointer(factor, n, "factor must have one entry a centre"));
           },
           nb::arg("coding"), nb::arg("centers"), nb::arg("width"), nb::arg("scale"), nb::arg("log_prior").none(),
           nb::arg("factor").none())
      .def(
          "code",
          [](const Gate<T>& gate, const RowsHandle& rows, Matrix<int32_t> tile, Matrix<double> weight, int n_threads) {
            const int64_t n = rows.n_rows();
            require(static_cast<int64_t>(tile.shape(0)) == n && static_cast<int64_t>(tile.shape(1)) == gate.width,
                    "tile must have shape (n_rows, width)");
            require(static_cast<int64_t>(weight.shape(0)) == n && static_cast<int64_t>(weight.shape(1)) == gate.width,
                    "weight must have shape (n_rows, width)");
            with_rows<T>(rows, gate.n_features,
                         [&](const auto& x) { code_all(gate, x, tile.data(), weight.data(), n_threads); });
          },
          nb::arg("rows"), nb::arg("tile").noconvert(), nb::arg("weight").noconvert(), nb::arg("n_threads") = 1);

  nb::class_<Tiles<T>>(m, tiles_name, "A bank of linear tiles, packed for scoring.")
      .def("__init__",
           [](Tiles<T>* self, Cube coef, Matrix<const double> intercept, bool vote) {
             const int64_t n_tiles = coef.shape(0), n_outputs = coef.shape(1), d = coef.shape(2);
             require(n_tiles >= 1 && n_outputs >= 1, "at least one tile and one output are needed");
             require(static_cast<int64_t>(intercept.shape(0)) == n_tiles &&
                         static_cast<int64_t>(intercept.shape(1)) == n_outputs,
                     "intercept must have shape (n_tiles, n_outputs)");
             new (self) Tiles<T>(coef.data(), intercept.data(), n_tiles, n_outputs, d, vote);
           },
           nb::arg("coef"), nb::arg("intercept"), nb::arg("vote"))
      .def(
          "score",
          [](const Tiles<T>& tiles, const Gate<T>& gate, const RowsHandle& rows, Matrix<double> out, int n_threads) {
            require(gate.n_tiles == tiles.n_tiles && gate.n_features == tiles.n_features,
                    "gate and tiles do not belong together");
            require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                        static_cast<int64_t>(out.shape(1)) == tiles.n_outputs,
                    "out must have shape (n_rows, n_outputs)");
            with_rows<T>(rows, tiles.n_features,
                         [&](const auto& x) { score_all(gate, tiles, x, out.data(), n_threads); });
          },
          nb::arg("gate"), nb::arg("rows"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "out[i, c] = sum_a weight[i, a] link(<w[tile[i, a], c], x_i> + b), with codes from the gate.")
      .def(
          "score_codes",
          [](const Tiles<T>& tiles, const RowsHandle& rows, Matrix<const int32_t> tile,
             std::optional<Matrix<const double>> weight, Matrix<double> out, int n_threads) {
            const int64_t n = rows.n_rows(), width = tile.shape(1);
            require_length(tile.shape(0), n, "tile must have one line a row");
            if (weight)
              require(static_cast<int64_t>(weight->shape(0)) == n && static_cast<int64_t>(weight->shape(1)) == width,
                      "tile and weight must have the same shape");
            for (int64_t i = 0; i < n * width; ++i)
              require(tile.data()[i] >= 0 && tile.data()[i] < tiles.n_tiles, "a tile is out of range");
            require(static_cast<int64_t>(out.shape(0)) == n && static_cast<int64_t>(out.shape(1)) == tiles.n_outputs,
                    "out must have shape (n_rows, n_outputs)");
            with_rows<T>(rows, tiles.n_features, [&](const auto& x) {
              score_all(tiles, x, tile.data(), weight ? weight->data() : nullptr, width, out.data(), n_threads);
            });
          },
          nb::arg("rows"), nb::arg("tile"), nb::arg("weight").none(), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "The same with codes given.");
}

}  // namespace

void bind_score(nb::module_& m) {
  bind_precision<float>(m, "GateF32", "TilesF32");
  bind_precision<double>(m, "GateF64", "TilesF64");
}

}  // namespace svmosaic

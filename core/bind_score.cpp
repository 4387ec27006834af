// Scoring.
#include "bind.hpp"
#include "score.hpp"

namespace svmosaic {

void bind_score(nb::module_& m) {
  m.def(
      "score",
      [](const RowsHandle& rows, Matrix<const int32_t> tile, std::optional<Matrix<const double>> weight,
         Array<const double, nb::ndim<3>> tiles, bool vote, Matrix<double> out, int n_threads) {
        const int64_t n = rows.n_rows(), width = tile.shape(1), n_tiles = tiles.shape(0), n_outputs = tiles.shape(1);
        require_length(tile.shape(0), n, "tile must have one line a row");
        if (weight)
          require(static_cast<int64_t>(weight->shape(0)) == n && static_cast<int64_t>(weight->shape(1)) == width,
                  "tile and weight must have the same shape");
        for (int64_t i = 0; i < n * width; ++i)
          require(tile.data()[i] >= 0 && tile.data()[i] < n_tiles, "a tile is out of range");
        require(static_cast<int64_t>(tiles.shape(2)) == rows.n_features() + 1,
                "tiles must have shape (n_tiles, n_outputs, n_features + 1)");
        require(static_cast<int64_t>(out.shape(0)) == n && static_cast<int64_t>(out.shape(1)) == n_outputs,
                "out must have shape (n_rows, n_outputs)");
        const Codes codes{tile.data(), weight ? weight->data() : nullptr, width};
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) { score(x, codes, tiles.data(), n_outputs, vote, out.data(), n_threads); });
      },
      nb::arg("rows"), nb::arg("tile"), nb::arg("weight").none(), nb::arg("tiles"), nb::arg("vote"), nb::arg("out").noconvert(),
      nb::arg("n_threads") = 1, "out[i, c] = sum_a weight[i, a] link(<tiles[tile[i, a], c], (x_i, bias)>).");
}

}  // namespace svmosaic

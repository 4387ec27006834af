// Boosted trees, and the bins of columns.
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "boosting.hpp"

namespace svmosaic {

namespace {

struct BoosterHandle {
  Booster booster;
  nb::object owners;
};

nb::object moved(const std::vector<int32_t>& values) {
  auto* kept = new std::vector<int32_t>(values);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int32_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::object moved(const std::vector<double>& values) {
  auto* kept = new std::vector<double>(values);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// out[i, f]: how many of the edges of column f are below X[i, f].
template <class T>
void bin_rows(Matrix<const T> X, Vector<const double> edge, Vector<const int32_t> start, Matrix<uint8_t> out,
              int n_threads) {
  const int64_t n = X.shape(0), n_columns = X.shape(1);
  require_length(start.shape(0), n_columns + 1, "start must have one entry per column, and one more");
  require(start.data()[0] == 0 && start.data()[n_columns] == static_cast<int32_t>(edge.shape(0)),
          "start must run from 0 to the number of edges");
  for (int64_t f = 0; f < n_columns; ++f)
    require(start.data()[f] <= start.data()[f + 1] && start.data()[f + 1] - start.data()[f] < Booster::kBins,
            "a column has at most 255 edges");
  require(static_cast<int64_t>(out.shape(0)) == n && static_cast<int64_t>(out.shape(1)) == n_columns,
          "out must have the shape of X");
  nb::gil_scoped_release release;
  const int64_t n_pieces = std::max<int64_t>(1, std::min<int64_t>(n / 1024, 256));
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n, n_pieces, t);
    for (int64_t i = piece.begin; i < piece.end; ++i)
      for (int64_t f = 0; f < n_columns; ++f) {
        const double *first = edge.data() + start.data()[f], *last = edge.data() + start.data()[f + 1];
        const double x = static_cast<double>(X.data()[i * n_columns + f]);
        int64_t left = last - first;
        const double* low = first;
        while (left > 0) {  // the first edge that is not below x
          const int64_t half = left >> 1;
          const bool below = low[half] < x;
          low += below ? half + 1 : 0;
          left = below ? left - half - 1 : half;
        }
        out.data()[i * n_columns + f] = static_cast<uint8_t>(low - first);
      }
  });
}

}  // namespace

void bind_boosting(nb::module_& m) {
  m.def("bin_rows", &bin_rows<float>, nb::arg("X"), nb::arg("edge"), nb::arg("start"), nb::arg("out").noconvert(),
        nb::arg("n_threads") = 1, "The number of edges of its column below each value.");
  m.def("bin_rows", &bin_rows<double>, nb::arg("X"), nb::arg("edge"), nb::arg("start"), nb::arg("out").noconvert(),
        nb::arg("n_threads") = 1);
  nb::class_<BoosterHandle>(m, "Booster", "Boosted trees on binned columns, which grow round by round.")
      .def(
          "__init__",
          [](BoosterHandle* self, Matrix<const uint8_t> bins, Vector<const int32_t> n_bins, int64_t n_fitted, Matrix<const double> target,
             Vector<const double> weight, int loss, double rate, double l2, int64_t max_leaves, int64_t min_rows,
             double min_curvature, double column_share, double row_share, Vector<const uint64_t> seed) {
            const int64_t n = bins.shape(0), n_outputs = target.shape(1);
            require(n_fitted >= 1 && n_fitted <= n && n < (int64_t{1} << 31), "n_fitted must be between 1 and the rows");
            require_length(n_bins.shape(0), bins.shape(1), "n_bins must have one entry per column");
            require(bins.shape(1) >= 1, "a column is needed");
            for (size_t f = 0; f < n_bins.shape(0); ++f)
              require(n_bins.data()[f] != 0 && std::abs(n_bins.data()[f]) <= Booster::kBins, "a column has 1 to 256 bins");
            for (int64_t i = 0; i < n; ++i)
              for (size_t f = 0; f < n_bins.shape(0); ++f)
                require(bins.data()[i * bins.shape(1) + f] < std::abs(n_bins.data()[f]), "a bin is out of range");
            require_length(target.shape(0), n, "target must have one line per row");
            require_length(weight.shape(0), n, "weight must have one entry per row");
            require_length(seed.shape(0), 4, "the seed is four words");
            require(loss >= 0 && loss <= 2, "the loss must be 0, 1 or 2");
            require(loss != 2 || n_outputs >= 2, "the softmax needs two outputs");
            require(max_leaves >= 2 && min_rows >= 1, "a tree needs two leaves, and a leaf a row");
            require(rate > 0 && l2 >= 0 && min_curvature >= 0, "rate must be positive, l2 and min_curvature not negative");
            require(column_share > 0 && column_share <= 1 && row_share > 0 && row_share <= 1,
                    "shares must be above 0 and at most 1");
            double total = 0.0;
            for (int64_t i = 0; i < n_fitted; ++i) total += weight.data()[i];
            require(total > 0, "the rows that are fitted need a weight");
            new (self) BoosterHandle{
                Booster(bins.data(), n, bins.shape(1), n_bins.data(), n_fitted, target.data(), weight.data(), n_outputs,
                        {static_cast<BoostingLoss>(loss), rate, l2, max_leaves, min_rows, min_curvature, column_share,
                         row_share},
                        seed.data()),
                nb::make_tuple(bins, target, weight)};
          },
          nb::arg("bins"), nb::arg("n_bins"), nb::arg("n_fitted"), nb::arg("target"), nb::arg("weight"), nb::arg("loss"), nb::arg("rate"),
          nb::arg("l2"), nb::arg("max_leaves"), nb::arg("min_rows"), nb::arg("min_curvature"), nb::arg("column_share"),
          nb::arg("row_share"), nb::arg("seed"))
      .def(
          "round",
          [](BoosterHandle& self, int n_threads) {
            nb::gil_scoped_release release;
            return self.booster.round(n_threads);
          },
          nb::arg("n_threads") = 1, "Adds a tree per output; returns the mean loss of the rows that are held out.")
      .def("scores", [](const BoosterHandle& self) { return moved(self.booster.scores()); })
      .def("trees", [](const BoosterHandle& self) {
        const BoostedTrees& trees = self.booster.trees();
        return nb::make_tuple(moved(trees.feature), moved(trees.bin), moved(trees.left), moved(trees.roots),
                              moved(trees.output), moved(trees.value), moved(self.booster.start_scores()));
      });
}

}  // namespace svmosaic

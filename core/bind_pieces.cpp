// Pieces: knots, bins, and the rows made of them.
#include <memory>

#include "bind.hpp"
#include "knots.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "pieces.hpp"

namespace svmosaic {
namespace {

using Bins = Array<uint8_t, nb::ndim<2>>;

template <class T>
nb::object owned(std::vector<T>&& values) {
  auto* data = new std::vector<T>(std::move(values));
  nb::capsule owner(data, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data->data(), {data->size()}, owner));
}

// (knots end to end, where those of each column start, center, scale, reach)
nb::tuple described(const std::vector<Column>& columns) {
  std::vector<double> knots, center, scale, reach;
  std::vector<int64_t> start{0};
  for (const Column& column : columns) {
    knots.insert(knots.end(), column.knots.begin(), column.knots.end());
    start.push_back(static_cast<int64_t>(knots.size()));
    center.push_back(column.center);
    scale.push_back(column.scale);
    reach.push_back(column.reach);
  }
  return nb::make_tuple(owned(std::move(knots)), owned(std::move(start)), owned(std::move(center)),
                        owned(std::move(scale)), owned(std::move(reach)));
}

// Columns whose values are read together: some lines of the cache.
constexpr int64_t kColumnsAtOnce = 64;
// Columns that are copied out of the rows together: what a line of the cache holds.
constexpr int64_t kColumnsTaken = 8;

// Of the rows listed, or of all.
template <class T>
nb::tuple find_knots(Matrix<const T> x, Vector<const double> weight, int64_t n_knots, int n_threads,
                     std::optional<Vector<const int64_t>> rows) {
  const int64_t d = x.shape(1), n = rows ? rows->shape(0) : x.shape(0);
  require(n_knots >= 2, "at least two knots are needed");
  require_length(weight.shape(0), n, "weight must have one entry per row");
  for (int64_t i = 0; rows && i < n; ++i)
    require(rows->data()[i] >= 0 && rows->data()[i] < static_cast<int64_t>(x.shape(0)), "a row index is out of range");
  const auto row = [&](int64_t i) { return x.data() + (rows ? rows->data()[i] : i) * d; };
  std::vector<Column> columns(d);
  {
    nb::gil_scoped_release release;
    parallel_for(n == 0 ? 0 : (d + kColumnsAtOnce - 1) / kColumnsAtOnce, n_threads, [&](int64_t t) {
      const int64_t first = t * kColumnsAtOnce, m = std::min(kColumnsAtOnce, d - first);
      std::vector<T> least(row(0) + first, row(0) + first + m), largest = least;
      std::vector<T> others(m, T(0));
      for (int64_t i = 1; i < n; ++i) {
        if (rows && i + kRowsAhead < n)
          for (int64_t f = 0; f < m; f += kColumnsTaken) prefetch(row(i + kRowsAhead) + first + f);
        see_row(row(i) + first, m, least.data(), largest.data(), others.data());
      }
      std::vector<int64_t> curved;
      for (int64_t f = 0; f < m; ++f)
        if (others[f] == 0)
          columns[first + f] = binary_column(least[f], largest[f]);
        else
          curved.push_back(first + f);
      std::vector<Weighted> values;
      std::vector<T> taken;  // [column][row]
      for (auto at = curved.begin(); at != curved.end();) {
        const int64_t n_taken = std::min<int64_t>(kColumnsTaken, curved.end() - at);
        taken.resize(n_taken * n);
        for (int64_t i = 0; i < n; ++i) {
          if (i + kRowsAhead < n) prefetch(row(i + kRowsAhead) + at[0]);
          for (int64_t c = 0; c < n_taken; ++c) taken[c * n + i] = row(i)[at[c]];
        }
        for (int64_t c = 0; c < n_taken; ++c, ++at) {
          values.resize(n);
          for (int64_t i = 0; i < n; ++i) values[i] = {static_cast<double>(taken[c * n + i]), weight.data()[i]};
          columns[*at] = dense_column(values, n_knots);
        }
      }
    });
  }
  return described(columns);
}

// The same for compressed sparse columns.
template <class T>
nb::tuple find_sparse_knots(Vector<const T> data, Vector<const int32_t> indices, Vector<const int64_t> indptr,
                            Vector<const double> weight, int64_t n_knots, int n_threads) {
  require(n_knots >= 2, "at least two knots are needed");
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "data and indices must have the same length");
  const int64_t d = static_cast<int64_t>(indptr.shape(0)) - 1, n = weight.shape(0), stored = data.shape(0);
  require(indptr.data()[0] == 0 && indptr.data()[d] == stored, "indptr must run from 0 to the number of stored values");
  for (int64_t f = 0; f < d; ++f) require(indptr.data()[f] <= indptr.data()[f + 1], "indptr must not decrease");
  for (int64_t p = 0; p < stored; ++p)
    require(indices.data()[p] >= 0 && indices.data()[p] < n, "a row index is out of range");
  std::vector<Column> columns(d);
  {
    nb::gil_scoped_release release;
    parallel_for(d, n_threads, [&](int64_t f) {
      std::vector<Weighted> values;
      for (int64_t p = indptr.data()[f]; p < indptr.data()[f + 1]; ++p)
        values.push_back({static_cast<double>(data.data()[p]), weight.data()[indices.data()[p]]});
      columns[f] = sparse_column(values, n_knots);
    });
  }
  return described(columns);
}

template <class T>
SVMOSAIC_CLONES void encode_piece(const Pieces<T>& pieces, const T* x, Piece piece, uint8_t* bins) {
  find_bins(pieces, x, pieces.n_inputs, piece.begin, piece.end, [&](int64_t i, int64_t c, int32_t bin, T) {
    bins[i * pieces.n_curves + c] = static_cast<uint8_t>(bin);
  });
}

template <class T>
void encode_dense(const Pieces<T>& pieces, Matrix<const T> x, Bins bins, int n_threads) {
  const int64_t n = x.shape(0);
  require(static_cast<int64_t>(x.shape(1)) == pieces.n_inputs, "the rows have another number of features");
  require(static_cast<int64_t>(bins.shape(0)) == n && static_cast<int64_t>(bins.shape(1)) == pieces.n_curves,
          "bins must have shape (n_rows, n_curves)");
  nb::gil_scoped_release release;
  const int64_t n_pieces = pieces_of(n, 16 * pieces.n_curves);
  parallel_for(n_pieces, n_threads,
               [&](int64_t t) { encode_piece(pieces, x.data(), Piece(n, n_pieces, t), bins.data()); });
}

template <class T>
void encode_sparse(const Pieces<T>& pieces, Vector<const T> data, Vector<const int32_t> indices, Vector<uint8_t> bins,
                   int n_threads) {
  const int64_t stored = data.shape(0);
  require_length(indices.shape(0), stored, "data and indices must have the same length");
  require_length(bins.shape(0), stored, "bins must have one entry per stored value");
  for (int64_t p = 0; p < stored; ++p)
    require(indices.data()[p] >= 0 && indices.data()[p] < pieces.n_inputs, "a column index is out of range");
  nb::gil_scoped_release release;
  const int64_t n_pieces = pieces_of(stored, 16);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(stored, n_pieces, t);
    for (int64_t p = piece.begin; p < piece.end; ++p) {
      const int64_t c = pieces.curve[indices.data()[p]];
      bins.data()[p] = c < 0 ? 0 : static_cast<uint8_t>(pieces.bin(c, data.data()[p]));
    }
  });
}

template <class T>
RowsHandle encoded_rows(nb::handle_t<Pieces<T>> self, Matrix<const T> x, Array<const uint8_t, nb::ndim<2>> bins,
                        double bias) {
  const Pieces<T>& pieces = nb::cast<const Pieces<T>&>(self);
  const int64_t n = x.shape(0);
  require(static_cast<int64_t>(x.shape(1)) == pieces.n_inputs, "the rows have another number of features");
  require(static_cast<int64_t>(bins.shape(0)) == n && static_cast<int64_t>(bins.shape(1)) == pieces.n_curves,
          "bins must have shape (n_rows, n_curves)");
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < pieces.n_curves; ++c)
      require(bins.data()[i * pieces.n_curves + c] < pieces.start[c + 1] - pieces.start[c] - 1, "a bin is out of range");
  EncodedRows<T> rows{&pieces, x.data(), bins.data(), nullptr, nullptr, n, pieces.n_features(), bias};
  nb::object lists = nb::none();
  if (std::optional<Ones> ones = list_ones(pieces, x.data(), n)) {
    auto* kept = new Ones(std::move(*ones));
    lists = nb::capsule(kept, [](void* p) noexcept { delete static_cast<Ones*>(p); });
    rows.ones = kept;
  }
  return {rows, nb::make_tuple(self, x, bins, lists)};
}

template <class T>
RowsHandle encoded_sparse_rows(nb::handle_t<Pieces<T>> self, Vector<const T> data, Vector<const int32_t> indices,
                               Vector<const int64_t> indptr, Vector<const uint8_t> bins, double bias) {
  const Pieces<T>& pieces = nb::cast<const Pieces<T>&>(self);
  const int64_t n = check_csr(data, indices, indptr, pieces.n_inputs);
  require(bins.shape(0) == data.shape(0), "bins must have one entry per stored value");
  for (size_t p = 0; p < data.shape(0); ++p)
    if (const int64_t c = pieces.curve[indices.data()[p]]; c >= 0)
      require(bins.data()[p] < pieces.start[c + 1] - pieces.start[c] - 1, "a bin is out of range");
  return {EncodedRows<T>{&pieces, data.data(), bins.data(), indices.data(), indptr.data(), n, pieces.n_features(), bias},
          nb::make_tuple(self, data, indices, indptr, bins)};
}

template <class T>
void bind_precision(nb::module_& m, const char* name) {
  m.def("find_knots", &find_knots<T>, nb::arg("x").noconvert(), nb::arg("weight"), nb::arg("n_knots"),
        nb::arg("n_threads") = 1, nb::arg("rows").none() = nb::none(),
        "Knots end to end, where those of each column start, center, scale and reach; of the rows listed, if any.");
  m.def("find_sparse_knots", &find_sparse_knots<T>, nb::arg("data").noconvert(), nb::arg("indices"), nb::arg("indptr"),
        nb::arg("weight"), nb::arg("n_knots"), nb::arg("n_threads") = 1, "The same for compressed sparse columns.");

  nb::class_<Pieces<T>>(m, name, "Piecewise-linear features of rows: straight terms and hat functions.")
      .def("__init__",
           [](Pieces<T>* self, Vector<const double> center, Vector<const double> scale, Vector<const double> low,
              Vector<const double> high, Vector<const int32_t> column, Vector<const int32_t> start,
              Vector<const double> knot, Vector<const double> kept) {
             const int64_t d = center.shape(0), n_curves = column.shape(0);
             check_curves(d, scale, column, start, knot);
             require_length(low.shape(0), d, "low must have one entry per column");
             require_length(high.shape(0), d, "high must have one entry per column");
             require_length(kept.shape(0), knot.shape(0), "kept must have one entry per knot");
             new (self) Pieces<T>(center.data(), scale.data(), low.data(), high.data(), d, column.data(), start.data(),
                                  n_curves, knot.data(), kept.data());
           },
           nb::arg("center"), nb::arg("scale"), nb::arg("low"), nb::arg("high"), nb::arg("column"), nb::arg("start"),
           nb::arg("knot"), nb::arg("kept"))
      .def_prop_ro("n_features", &Pieces<T>::n_features)
      .def("encode", &encode_dense<T>, nb::arg("x").noconvert(), nb::arg("bins").noconvert(), nb::arg("n_threads") = 1,
           "bins[i, c] = the bin of row i on curve c.")
      .def("encode_sparse", &encode_sparse<T>, nb::arg("data").noconvert(), nb::arg("indices"),
           nb::arg("bins").noconvert(), nb::arg("n_threads") = 1, "bins[p] = the bin of stored entry p; 0 without a curve.");
  m.def("encoded_rows", &encoded_rows<T>, nb::arg("pieces"), nb::arg("x").noconvert(), nb::arg("bins").noconvert(),
        nb::arg("bias"));
  m.def("encoded_sparse_rows", &encoded_sparse_rows<T>, nb::arg("pieces"), nb::arg("data").noconvert(),
        nb::arg("indices"), nb::arg("indptr"), nb::arg("bins").noconvert(), nb::arg("bias"));
}

}  // namespace

void bind_pieces(nb::module_& m) {
  bind_precision<float>(m, "PiecesF32");
  bind_precision<double>(m, "PiecesF64");
}

}  // namespace svmosaic

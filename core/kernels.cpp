// The loops that gates, tiles and the learner share, compiled once: products of rows with panels, and rows with
// curves.
#include "curves.hpp"
#include "panels.hpp"

namespace svmosaic {

// ---- products with panels -----------------------------------------------------------------------------

// out[r][at ..] (+)= <x_r, columns of the panel> over features [begin, end), for R rows and V vectors; `panel` has `lanes`
// numbers per feature
#if defined(__GNUC__)
template <class Vector, int R, int V, class T>
inline void dense_by_panel(const T* const* x, const T* panel, int64_t lanes, int64_t begin, int64_t end, T* const* out,
                           int64_t at) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  Vector sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = begin == 0 ? Vector{} : load_vector<Vector>(out[r] + at + v * w);
  for (int64_t f = begin; f < end; ++f) {
    Vector column[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) column[v] = load_vector<Vector>(panel + f * lanes + v * w);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T value = x[r][f];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] += value * column[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store_vector(out[r] + at + v * w, sum[r][v]);
}

// V vectors of all panels at a time.
template <class Vector, int V, class T>
inline void multiply_by_panels(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  constexpr int many = kRowsAtOnce * 2 / V;
  constexpr int64_t columns = V * static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  const int64_t lanes = panels.lanes;
  for (int64_t at = 0; at < panels.padded(); at += columns) {
    const T* panel = panels.panel(at / lanes) + at % lanes;
    for (int64_t begin = 0; begin < panels.n_features; begin += kFeaturesAtOnce) {
      const int64_t end = std::min(panels.n_features, begin + kFeaturesAtOnce);
      int64_t r = 0;
      for (; r + many <= n; r += many) dense_by_panel<Vector, many, V>(x + r, panel, lanes, begin, end, out + r, at);
      for (; r + 3 <= n; r += 3) dense_by_panel<Vector, 3, V>(x + r, panel, lanes, begin, end, out + r, at);
      for (; r < n; ++r) dense_by_panel<Vector, 1, V>(x + r, panel, lanes, begin, end, out + r, at);
    }
  }
}

#endif

template <class T>
void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    Compiled<multiply_by_panels<ShortLanes<T>, 2, T>>::for_short(x, n, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    Compiled<multiply_by_panels<Lanes<T>, 1, T>>::for_long(x, n, panels, out);
  else
    Compiled<multiply_by_panels<Lanes<T>, 2, T>>::for_long(x, n, panels, out);
#else
  for (int64_t r = 0; r < n; ++r)
    for (int64_t at = 0; at < panels.padded(); ++at) {
      const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
      T sum = 0;
      for (int64_t f = 0; f < panels.n_features; ++f) sum += x[r][f] * panel[f * panels.lanes];
      out[r][at] = sum;
    }
#endif
}

#if defined(__GNUC__)
// As below, V vectors of all panels at a time.
template <class Vector, int V, class X, class T>
inline void multiply_sparse_by_panels(const SparseRows<X>& x, int64_t begin, const int32_t* rows, int64_t n,
                                      const Panels<T>& panels, T* const* out) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t i = begin + (rows ? rows[r] : r);
    for (int64_t at = 0; at < panels.padded(); at += V * w) {
      const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
      Vector sum[V] = {};
      for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
        const T* column = panel + static_cast<int64_t>(x.indices[p]) * panels.lanes;
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[v] += static_cast<T>(x.data[p]) * load_vector<Vector>(column + v * w);
      }
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) store_vector(out[r] + at + v * w, sum[v]);
    }
  }
}

#endif

template <class X, class T>
void multiply_sparse(const SparseRows<X>& x, int64_t begin, const int32_t* rows, int64_t n, const Panels<T>& panels,
                     T* const* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    Compiled<multiply_sparse_by_panels<ShortLanes<T>, 2, X, T>>::for_short(x, begin, rows, n, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    Compiled<multiply_sparse_by_panels<Lanes<T>, 1, X, T>>::for_long(x, begin, rows, n, panels, out);
  else
    Compiled<multiply_sparse_by_panels<Lanes<T>, 2, X, T>>::for_long(x, begin, rows, n, panels, out);
#else
  for (int64_t r = 0; r < n; ++r) {
    const int64_t i = begin + (rows ? rows[r] : r);
    std::fill(out[r], out[r] + panels.padded(), T(0));
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
      for (int64_t at = 0; at < panels.padded(); ++at)
        out[r][at] += static_cast<T>(x.data[p]) *
                      panels.panel(at / panels.lanes)[static_cast<int64_t>(x.indices[p]) * panels.lanes + at % panels.lanes];
  }
#endif
}

// ---- rows with curves ---------------------------------------------------------------------------------

#if defined(SVMOSAIC_LONG_VECTORS)
// hat and part of kLanes<T> rows at a time, as many as there are; returns how many rows were taken.
template <class T>
SVMOSAIC_LONG_VECTORS int64_t see_by_vectors(const Curves<T>& curves, const T* data, int64_t stride, int64_t n,
                                             int32_t* hat, T* part) {
  constexpr int64_t w = kLanes<T>, most = 16;  // curves whose vectors wait in the first-level cache
  const KnotTables<T>& tables = curves.tables;
  const int64_t n_curves = curves.pieces.n_curves;
  int64_t r = 0;
  for (; r + w <= n; r += w)
    for (int64_t first = 0; first < n_curves; first += most) {
      const int64_t m = std::min(most, n_curves - first);
      Places<T> bin[most];
      Lanes<T> fraction[most];
      for (int64_t q = 0; q < m; ++q) {
        const int64_t c = first + q, from = curves.pieces.start[c];
        const Lanes<T> x = spread(data + r * stride + curves.pieces.column[c], stride);
        const VectorOfBins<T> bins = bins_of(tables.inner.data() + c * tables.kTable, x);
        Lanes<T> t = (x - looked_up(tables.knot.data() + from, bins)) * looked_up(tables.inverse.data() + from, bins);
        t = t > 0 ? t : Lanes<T>{};
        fraction[q] = t < 1 ? t : 1 + Lanes<T>{};
        bin[q] = bins.whole();
      }
      for (int64_t l = 0; l < w; ++l)
        for (int64_t q = 0; q < m; ++q) {
          const int64_t at = (r + l) * n_curves + first + q;
          hat[at] = curves.pieces.start[first + q] + static_cast<int32_t>(bin[q][l]);
          part[2 * at] = 1 - fraction[q][l];
          part[2 * at + 1] = fraction[q][l];
        }
    }
  return r;
}
#endif

template <class T>
SVMOSAIC_CLONES CurveRows<T> see_rows(const Curves<T>& curves, const DenseRows<T>& x, int64_t begin, int64_t n,
                            CurveScratch<T>& s) {
  const Pieces<T>& pieces = curves.pieces;
  const int64_t n_curves = pieces.n_curves, n_straight = curves.n_straight();
  s.straight.resize(n * n_straight);
  s.hat.resize(n * n_curves);
  s.part.resize(2 * n * n_curves);
  for (int64_t r = 0; r < n; ++r) {
    const T* row = x.data + (begin + r) * x.stride;
    T* straight = s.straight.data() + r * n_straight;
    for (const auto& run : curves.runs) {
      const T *from = row + run.column, *center = curves.center.data() + run.place, *scale = curves.scale.data() + run.place;
      T* to = straight + run.place;
      for (int64_t f = 0; f < run.n; ++f) to[f] = (from[f] - center[f]) * scale[f];
    }
  }
  int64_t done = 0;
#if defined(SVMOSAIC_LONG_VECTORS)
  if (curves.tables.takes(n))
    done = see_by_vectors(curves, x.data + begin * x.stride, x.stride, n, s.hat.data(), s.part.data());
#endif
  int32_t* hat = s.hat.data() - begin * n_curves;
  T* part = s.part.data() - 2 * begin * n_curves;
  find_bins(pieces, x.data, x.stride, begin + done, begin + n, [&](int64_t i, int64_t c, int32_t bin, T value) {
    const int32_t h = pieces.start[c] + bin;
    hat[i * n_curves + c] = h;
#if defined(__GNUC__)
    // In a vector, to be clipped without branches, which values beyond the last knot would take by surprise.
    typedef T Four __attribute__((vector_size(16)));
    Four t = Four{(value - pieces.knot[h]) * pieces.inverse[h]};
    t = t > 0 ? t : Four{};
    t = t < 1 ? t : Four{1};
    part[2 * (i * n_curves + c)] = 1 - t[0];
    part[2 * (i * n_curves + c) + 1] = t[0];
#else
    const T t = pieces.fraction(h, value);
    part[2 * (i * n_curves + c)] = 1 - t;
    part[2 * (i * n_curves + c) + 1] = t;
#endif
  });
  return {s.straight.data(), s.hat.data(), s.part.data(), n_straight, n_curves};
}

template <class T>
SVMOSAIC_CLONES SparseRows<T> see_rows(const Curves<T>& curves, const SparseRows<T>& x, int64_t begin, int64_t n,
                             CurveScratch<T>& s) {
  const Pieces<T>& pieces = curves.pieces;
  const int64_t first = curves.n_straight(), last = first + pieces.n_hats;
  s.data.clear();
  s.indices.clear();
  s.indptr.assign(1, 0);
  const auto add = [&](int64_t f, T value) {
    s.indices.push_back(static_cast<int32_t>(f));
    s.data.push_back(value);
  };
  for (int64_t i = begin; i < begin + n; ++i) {
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const int64_t f = x.indices[p], c = pieces.curve[f];
      if (c < 0) {
        add(curves.slope[f], x.data[p] * pieces.scale[f]);
        continue;
      }
      const int64_t h = pieces.start[c] + pieces.bin(c, x.data[p]);
      const T t = pieces.fraction(h, x.data[p]);
      add(first + h, 1 - t);
      add(first + h + 1, t);
      if (curves.zero_is_zero) continue;
      add(first + curves.zero_hat[c], curves.zero_fraction[c] - 1);
      add(first + curves.zero_hat[c] + 1, -curves.zero_fraction[c]);
    }
    if (!curves.zero_is_zero) add(last, 1);
    s.indptr.push_back(static_cast<int64_t>(s.data.size()));
  }
  return {s.data.data(), s.indices.data(), s.indptr.data(), n, last + 1, 0.0};
}

template <class T>
CurveRows<T> seen_by(const Curves<T>& curves, const DenseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s) {
  return see_rows(curves, x, begin, n, s);
}
template <class T>
SparseRows<T> seen_by(const Curves<T>& curves, const SparseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s) {
  return see_rows(curves, x, begin, n, s);
}

#if defined(__GNUC__)
// out[r][at ..] = the products of the R rows listed with V vectors of columns; `panel` has `lanes` numbers per feature
template <class Vector, int R, int V, class T>
inline void curves_by_panel(const CurveRows<T>& x, const int32_t* rows, const T* panel, int64_t lanes, T* const* out,
                            int64_t at) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  Vector sum[R][V] = {};
  for (int64_t f = 0; f < x.n_straight; ++f)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[r][v] += x.straight[rows[r] * x.n_straight + f] * load_vector<Vector>(panel + f * lanes + v * w);
  const T* values = panel + x.n_straight * lanes;
  for (int64_t c = 0; c < x.n_curves; ++c)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const int64_t at_curve = rows[r] * x.n_curves + c;
      const T first = x.part[2 * at_curve], second = x.part[2 * at_curve + 1], *left = values + x.hat[at_curve] * lanes;
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        // One after the other, so that the compiler fuses both in the same way for any number of rows.
        sum[r][v] += first * load_vector<Vector>(left + v * w);
        sum[r][v] += second * load_vector<Vector>(left + lanes + v * w);
      }
    }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store_vector(out[r] + at + v * w, sum[r][v]);
}

// V vectors of all panels at a time.
template <class Vector, int V, class T>
inline void multiply_curves_by_panels(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                                      T* const* out) {
  constexpr int64_t columns = V * static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  for (int64_t at = 0; at < panels.padded(); at += columns) {
    const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) curves_by_panel<Vector, 4, V>(x, rows + r, panel, panels.lanes, out + r, at);
    for (; r < n; ++r) curves_by_panel<Vector, 1, V>(x, rows + r, panel, panels.lanes, out + r, at);
  }
}
#endif

template <class T>
void multiply_curves(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                            T* const* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    Compiled<multiply_curves_by_panels<ShortLanes<T>, 2, T>>::for_short(x, rows, n, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    Compiled<multiply_curves_by_panels<Lanes<T>, 1, T>>::for_long(x, rows, n, panels, out);
  else
    Compiled<multiply_curves_by_panels<Lanes<T>, 2, T>>::for_long(x, rows, n, panels, out);
#else
  for (int64_t r = 0; r < n; ++r)
    for (int64_t at = 0; at < panels.padded(); ++at) {
      const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
      T sum = 0;
      for (int64_t f = 0; f < x.n_straight; ++f) sum += x.straight[rows[r] * x.n_straight + f] * panel[f * panels.lanes];
      for (int64_t c = 0; c < x.n_curves; ++c) {
        const int64_t at_curve = rows[r] * x.n_curves + c;
        const T* left = panel + (x.n_straight + x.hat[at_curve]) * panels.lanes;
        sum += x.part[2 * at_curve] * left[0] + x.part[2 * at_curve + 1] * left[panels.lanes];
      }
      out[r][at] = sum;
    }
#endif
}

// ---- both precisions ----------------------------------------------------------------------------------

#define SVMOSAIC_PRECISION(T)                                                                                        \
  template void multiply_dense(const T* const*, int64_t, const Panels<T>&, T* const*);                               \
  template void multiply_sparse(const SparseRows<T>&, int64_t, const int32_t*, int64_t, const Panels<T>&, T* const*); \
  template CurveRows<T> seen_by(const Curves<T>&, const DenseRows<T>&, int64_t, int64_t, CurveScratch<T>&);          \
  template SparseRows<T> seen_by(const Curves<T>&, const SparseRows<T>&, int64_t, int64_t, CurveScratch<T>&);        \
  template void multiply_curves(const CurveRows<T>&, const int32_t*, int64_t, const Panels<T>&, T* const*);
SVMOSAIC_PRECISION(float)
SVMOSAIC_PRECISION(double)
template void multiply_sparse(const SparseRows<float>&, int64_t, const int32_t*, int64_t, const Panels<double>&,
                              double* const*);

}  // namespace svmosaic

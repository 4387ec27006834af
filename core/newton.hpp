// Kernels of the second-order solver: the dual point reached by a step, the slope along a direction,
// and one curvature matrix per tile.
//
// In a proximal step around the duals `center`, with step size sigma_r = scale * c_r, a row of the loss with p = 1 answers
// to its margin with
//
//   a_r(m) = clip( center_r + sigma_r (t_r - m),  0,  c_r )
//
// and takes part in the curvature where the clipping is idle. Plain Newton on the loss with p = 2 is the same with
// center 0, scale 2 and no upper bound: a_r(m) = c_r pull_r.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "curve_hessian.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

struct Response {
  const double *center, *cost, *threshold;  // center null: p = 2; threshold null: all ones
  double scale;

  double sigma(int64_t r) const { return scale * cost[r]; }
};

// The same with what is null known to the compiler: loops over it have no branches.
template <bool kProximal, bool kThreshold>
struct Answer {
  const Response& of;

  double free(int64_t r, double margin) const {
    const double moved = of.sigma(r) * ((kThreshold ? of.threshold[r] : 1) - margin);
    return kProximal ? of.center[r] + moved : moved;
  }
  double clip(int64_t r, double a) const {
    const double positive = a > 0 ? a : 0;
    if constexpr (kProximal) return positive < of.cost[r] ? positive : of.cost[r];
    return positive;
  }
};

template <class Visit>
auto visit(const Response& response, const Visit& visit) {
  if (response.center && response.threshold) return visit(Answer<true, true>{response});
  if (response.center) return visit(Answer<true, false>{response});
  if (response.threshold) return visit(Answer<false, true>{response});
  return visit(Answer<false, false>{response});
}

// What the rows add to the certificate of a response: their losses, what their duals earn and pay (D(alpha) but for the
// weights), and sum_r (alpha_r - center_r)^2 / sigma_r, twice the proximal term.
struct ResponseSums {
  double loss = 0, dual = 0, proximal = 0;

  ResponseSums& operator+=(const ResponseSums& other) {
    loss += other.loss;
    dual += other.dual;
    proximal += other.proximal;
    return *this;
  }
};

// Sums are kept apart by row modulo this, for the vector units; it fixes the order of addition.
constexpr int kSums = 16;
// Rows of four arrays or more count as so many values: a piece is read from a cache.
constexpr int64_t kResponseValues = 16;

// alpha_r = a_r(m_r); curvature_r = sigma_r where the clipping is idle or a margin `reach` away from idle, else 0.
// A reach above zero counts the rows that a step would soon run into, and so shortens it where they matter.
template <bool kProximal, bool kThreshold>
SVMOSAIC_CLONES ResponseSums respond_piece(const Answer<kProximal, kThreshold>& answer, const double* margin, double reach,
                                           Piece piece, double* alpha, double* curvature) {
  double loss[kSums] = {}, dual[kSums] = {}, proximal[kSums] = {};
  const auto row = [&](int64_t r, int t) {
    const double cost = answer.of.cost[r], sigma = answer.of.sigma(r), threshold = kThreshold ? answer.of.threshold[r] : 1;
    const double a = answer.free(r, margin[r]), clipped = answer.clip(r, a);
    const double slack = margin[r] < threshold ? threshold - margin[r] : 0;
    // Where a row costs nothing its dual is zero, and stays so.
    const double divisor = sigma > 0 ? sigma : 1;
    if constexpr (kProximal) {
      const double moved = clipped - answer.of.center[r];
      loss[t] += cost * slack;
      dual[t] += threshold * clipped;
      proximal[t] += moved * moved / divisor;
    } else {
      loss[t] += cost * slack * slack;
      dual[t] += threshold * clipped - clipped * clipped / (4 * (cost > 0 ? cost : 1));
    }
    alpha[r] = clipped;
    curvature[r] = std::fabs(a - clipped) <= reach * sigma ? sigma : 0;
  };
  int64_t r = piece.begin;
  for (; r + kSums <= piece.end; r += kSums)
    for (int t = 0; t < kSums; ++t) row(r + t, t);
  for (int t = 0; r < piece.end; ++r, ++t) row(r, t);
  ResponseSums sums;
  for (int t = 0; t < kSums; ++t) {
    sums.loss += loss[t];
    sums.dual += dual[t];
    sums.proximal += proximal[t];
  }
  return sums;
}

// The margins move by length * change (null: not at all) first.
inline ResponseSums respond(const Response& response, int64_t n, double* margin, const double* change, double length,
                            double reach, double* alpha, double* curvature, int n_threads) {
  const int64_t n_pieces = pieces_of(n, kResponseValues);
  std::vector<ResponseSums> partial(n_pieces);
  visit(response, [&](auto answer) {
    parallel_for(n_pieces, n_threads, [&](int64_t t) {
      const Piece piece(n, n_pieces, t);
      if (change) axpy(length, change + piece.begin, margin + piece.begin, piece.end - piece.begin);
      partial[t] = respond_piece(answer, margin, reach, piece, alpha, curvature);
    });
  });
  ResponseSums sums;
  for (const ResponseSums& part : partial) sums += part;
  return sums;
}

// The same at the margins of the weights v, which are computed, and V of the responses: what `margins`, `respond` and
// `accumulate` do, a few rows at a time, so that rows are read from memory once.
template <class Rows>
ResponseSums evaluate(const Rows& x, const Design& design, const int8_t* y, const double* v, const Response& response,
                      double reach, double* margin, double* alpha, double* curvature, double* implied, int n_threads) {
  constexpr int64_t kAtOnce = 32 * kSums;
  std::vector<ResponseSums> partial(partial_sums_of(x, design));
  with_touch<double>(x, design, [&](const auto& touching) {
    const int64_t stride = touching().stride();
    const PaddedBlocks<double> blocks(v, design.n_blocks, x.n_features + 1, stride);
    visit(response, [&](auto answer) {
      add_pieces(x, design, stride, implied, n_threads, [&](Piece piece, int64_t t, double* sum) {
        auto touch = touching();
        for (int64_t r = piece.begin; r < piece.end; r += kAtOnce) {
          Piece few = piece;
          few.begin = r;
          few.end = std::min(piece.end, r + kAtOnce);
          margins_of_piece(x, design, touch, y, blocks.begin(), few, margin);
          partial[t] += respond_piece(answer, margin, reach, few, alpha, curvature);
          accumulate_piece(x, design, touch, y, alpha, few, sum);
        }
      });
    });
  });
  ResponseSums sums;
  for (const ResponseSums& part : partial) sums += part;
  return sums;
}

template <class Answer>
SVMOSAIC_CLONES double pull_of_piece(const Answer& answer, const double* margin, const double* change, double step,
                                     Piece piece) {
  const auto term = [&](int64_t r) { return answer.clip(r, answer.free(r, margin[r] + step * change[r])) * change[r]; };
  double sums[kSums] = {};
  int64_t r = piece.begin;
  for (; r + kSums <= piece.end; r += kSums)
    for (int t = 0; t < kSums; ++t) sums[t] += term(r + t);
  double sum = 0;
  for (double s : sums) sum += s;
  for (; r < piece.end; ++r) sum += term(r);
  return sum;
}

// sum_r a_r(m_r + step * change_r) * change_r: what the losses add to the slope along a direction
inline double pull(const Response& response, int64_t n, const double* margin, const double* change, double step,
                   int n_threads) {
  const int64_t n_pieces = pieces_of(n, kResponseValues);
  std::vector<double> partial(n_pieces);
  visit(response, [&](auto answer) {
    parallel_for(n_pieces, n_threads, [&](int64_t t) {
      partial[t] = pull_of_piece(answer, margin, change, step, Piece(n, n_pieces, t));
    });
  });
  double sum = 0;
  for (double p : partial) sum += p;
  return sum;
}

// The rows with curvature, tile by tile: `order` (null: the identity) holds the rows of tile k at [bounds[k], bounds[k+1]).
inline int64_t active_members(const double* curvature, const int32_t* order, const int64_t* bounds, int64_t n_tiles,
                              int32_t* members, int64_t* offsets, int n_threads) {
  const int64_t n = bounds[n_tiles], n_pieces = pieces_of(n, kResponseValues);
  const auto row = [&](int64_t p) { return order ? order[p] : static_cast<int32_t>(p); };
  std::vector<int64_t> begin(n_pieces + 1, 0);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n, n_pieces, t);
    int64_t count = 0;
    for (int64_t p = piece.begin; p < piece.end; ++p) {
      if (row(p) < 0 || row(p) >= n) throw std::invalid_argument("order is out of range");
      count += curvature[row(p)] != 0;
    }
    begin[t + 1] = count;
  });
  for (int64_t t = 0; t < n_pieces; ++t) begin[t + 1] += begin[t];
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n, n_pieces, t);
    int64_t at = begin[t], k = std::lower_bound(bounds, bounds + n_tiles, piece.begin) - bounds;
    for (int64_t p = piece.begin; p < piece.end; ++p) {
      for (; k < n_tiles && bounds[k] == p; ++k) offsets[k] = at;
      if (at == begin[t + 1]) continue;  // what follows in `members` is another piece's
      members[at] = row(p);
      at += curvature[row(p)] != 0;
    }
  });
  // Tiles without rows at the end begin where all rows do.
  for (int64_t k = n_tiles; k >= 0 && bounds[k] == n; --k) offsets[k] = begin[n_pieces];
  return begin[n_pieces];
}

// ---- S += panel^T panel, lower triangle by tiles of kTileRows x kTileColumns ---------------------

constexpr int kTileRows = 8, kTileColumns = 16;

inline int64_t padded(int64_t n) { return (n + kTileColumns - 1) / kTileColumns * kTileColumns; }

#if defined(__GNUC__)
// By tiles of kRows x kVectors vectors, whose sums stay in registers; what is beyond `size` is padding.
template <class Vector, int kRows, int kVectors>
inline void rank_update_by(const double* panel, int64_t n_rows, int64_t size, int64_t stride, double* s) {
  constexpr int w = sizeof(Vector) / sizeof(double);
  for (int64_t j = 0; j < size; j += kVectors * w) {
    // What lies above the diagonal of a tile of kTileColumns columns is not needed.
    for (int64_t i = j / kTileColumns * kTileColumns; i < size; i += kRows) {
      Vector sum[kRows][kVectors] = {};
      for (int64_t r = 0; r < n_rows; ++r) {
        const double* row = panel + r * stride;
        Vector right[kVectors];
#pragma GCC unroll 2
        for (int c = 0; c < kVectors; ++c) right[c] = load_vector<Vector>(row + j + c * w);
#pragma GCC unroll 8
        for (int t = 0; t < kRows; ++t)
#pragma GCC unroll 2
          for (int c = 0; c < kVectors; ++c) sum[t][c] += row[i + t] * right[c];
      }
      for (int t = 0; t < kRows; ++t)
        for (int c = 0; c < kVectors; ++c) {
          double* out = s + (i + t) * stride + j + c * w;
          store_vector(out, load_vector<Vector>(out) + sum[t][c]);
        }
    }
  }
}

inline void rank_update(const double* panel, int64_t n_rows, int64_t size, int64_t stride, double* s) {
  if (has_long_registers())
    Compiled<rank_update_by<Lanes<double>, kTileRows, 2>>::for_long(panel, n_rows, size, stride, s);
  else
    Compiled<rank_update_by<ShortLanes<double>, kTileRows / 2, 2>>::for_short(panel, n_rows, size, stride, s);
}
#else
inline void rank_update(const double* panel, int64_t n_rows, int64_t size, int64_t stride, double* s) {
  for (int64_t i = 0; i < size; ++i)
    for (int64_t r = 0; r < n_rows; ++r)
      for (int64_t j = 0; j <= i; ++j) s[i * stride + j] += panel[r * stride + i] * panel[r * stride + j];
}
#endif

// A feature of a row that is not zero.
struct Entry {
  int64_t feature;
  double value;

  bool operator<(const Entry& other) const { return feature < other.feature; }
};

// S += weight (x_i, bias)(x_i, bias)^T, lower triangle, from the features of row i that are not zero; false, and nothing
// done, if there are too many of them for that to be cheaper than a dense product. `entries` has room for all features.
template <class Rows>
inline bool scatter_update(const Rows& x, int64_t i, double weight, int64_t stride, std::vector<Entry>& entries,
                           double* s) {
  // A scattered multiply-add costs as much as so many dense ones.
  constexpr int64_t kScattered = 6;
  Entry* entry = entries.data();
  int64_t n = 0;
  x.each(i, [&](int64_t f, double value) {
    entry[n] = {f, value};
    n += value != 0;
  });
  entry[n++] = {x.n_features, x.bias};
  if (kScattered * n * n > stride * stride) return false;
  if (!std::is_sorted(entry, entry + n)) std::sort(entry, entry + n);
  for (int64_t a = 0; a < n; ++a) {
    double* row = s + entry[a].feature * stride;
    const double scaled = weight * entry[a].value;
    for (int64_t b = 0; b <= a; ++b) row[entry[b].feature] += scaled * entry[b].value;
  }
  return true;
}

// Rows that are multiplied at a time.
constexpr int64_t kPanel = 128;

// Unpack the members from p on, which moves past them, each times the root of its weight; how many rows that makes. Those
// of few features are added to S at once.
template <class Rows>
SVMOSAIC_CLONES int64_t fill_panel(const Rows& x, const Design& design, const int32_t* members, int64_t end,
                                   const double* weight, int64_t stride, std::vector<Entry>& entries,
                                   double* s, int64_t& p, double* panel) {
  int64_t n = 0;
  for (; n < kPanel && p < end; ++p) {
    const int64_t r = members[p], i = design.row(r);
    if constexpr (!kPlain<Rows>)
      if (scatter_update(x, i, weight[r], stride, entries, s)) continue;
    x.unpack(i, std::sqrt(weight[r]), panel + n++ * stride);
  }
  return n;
}

// Add the members [begin, end) of rows with curves.
template <class T>
SVMOSAIC_CLONES void add_members(const EncodedRows<T>& x, const Design& design, const int32_t* members, int64_t begin,
                                 int64_t end, const double* weight, CurveHessian<T>& sum) {
  for (int64_t p = begin; p < end; ++p) {
    if (p + kRowsAhead < end) x.prefetch(design.row(members[p + kRowsAhead]));
    sum.add(design.row(members[p]), weight[members[p]]);
  }
}

// hessians[k] = sum over the rows `members[offsets[k] .. offsets[k+1])` of weight_r (x_r, bias)(x_r, bias)^T
template <class Rows>
void tile_hessians(const Rows& x, const Design& design, const int32_t* members, const int64_t* offsets,
                   int64_t n_tiles, const double* weight, double* hessians, int n_threads) {
  const int64_t size = x.n_features + 1, stride = padded(size);
  // Tiles with many rows are cut into chunks with a partial sum each; few enough that these take less room than an eighth
  // of the rows would as a dense float64 array, and a quarter of that if rows are stored in less.
  constexpr int64_t kRowsPerColumn = kPlain<Rows> ? 8 : 32;
  struct Chunk {
    int64_t tile, begin, end;
  };
  std::vector<Chunk> chunks;
  for (int64_t k = 0; k < n_tiles; ++k) {
    const int64_t n = offsets[k + 1] - offsets[k];
    const int64_t n_chunks = std::max<int64_t>(1, std::min<int64_t>(64, n / (kRowsPerColumn * stride + 1024)));
    for (int64_t t = 0; t < n_chunks; ++t) {
      const Piece piece(n, n_chunks, t);
      chunks.push_back({k, offsets[k] + piece.begin, offsets[k] + piece.end});
    }
  }
  // Some chunks at a time, so that no more partial sums are kept than threads need; they are added in the order of chunks.
  const int64_t n_chunks = chunks.size(), at_once = n_threads <= 1 ? 1 : std::min<int64_t>(n_chunks, 4 * int64_t{n_threads});
  std::vector<std::vector<double>> partial(at_once);
  [[maybe_unused]] std::vector<std::unique_ptr<CurveHessian<typename Rows::value_type>>> curved(at_once);
  std::fill(hessians, hessians + n_tiles * size * size, 0.0);
  for (int64_t first = 0; first < n_chunks; first += at_once) {
    const int64_t m = std::min(at_once, n_chunks - first);
    parallel_for(m, n_threads, [&](int64_t t) {
      const Chunk& chunk = chunks[first + t];
      for (int64_t p = chunk.begin; p < chunk.end; ++p)
        if (members[p] < 0 || members[p] >= design.n_rows) throw std::invalid_argument("a member is out of range");
      if constexpr (!kPlain<Rows>)
        if (CurveHessian<typename Rows::value_type>::pays(x, stride)) {
          curved[t].reset();  // makes room for the next
          curved[t] = std::make_unique<CurveHessian<typename Rows::value_type>>(x);
          return add_members(x, design, members, chunk.begin, chunk.end, weight, *curved[t]);
        }
      partial[t].assign(stride * stride, 0.0);
      std::vector<double> panel(kPanel * stride, 0.0);
      std::vector<Entry> entries(kPlain<Rows> ? 0 : x.n_features + 1);
      double* sum = partial[t].data();
      for (int64_t p = chunk.begin; p < chunk.end;) {
        const int64_t n = fill_panel(x, design, members, chunk.end, weight, stride, entries, sum, p, panel.data());
        rank_update(panel.data(), n, size, stride, sum);
      }
    });
    for (int64_t t = 0; t < m; ++t) {
      double* out = hessians + chunks[first + t].tile * size * size;
      if constexpr (!kPlain<Rows>)
        if (curved[t]) {
          curved[t]->add_to(out, size);
          continue;
        }
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j <= i; ++j) out[i * size + j] += partial[t][i * stride + j];
    }
  }
  for (int64_t k = 0; k < n_tiles; ++k) {
    double* out = hessians + k * size * size;
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < i; ++j) out[j * size + i] = out[i * size + j];
  }
}

}  // namespace svmosaic

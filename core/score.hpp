// Scoring a mosaic:  out[i, c] = sum_a weight[i, a] * link( <w[tile[i, a], c], x_i> + b[tile[i, a], c] )
//
// The link is the identity; the vote exp(-hinge(s)) - exp(-hinge(-s)) of the mixture papers; or that vote as a share of
// the sum of the two exponentials, p(+) - p(-) of an expert.
//
// Either only the tiles that a row's gate gives weight to are computed: rows are coded in blocks and their (row,
// tile) pairs sorted by tile, so that a tile's weights are fetched once for all the rows that need them. Or
// all tiles are computed by one matrix product, where that is cheaper: when a row needs most of them, or
// when the tiles are so small that looking them up costs more than multiplying. The choice is made for each row by
// the number of its tiles alone, so that its bits do not depend on the rows beside it.
//
// Tiles with curves see rows with their bins found, a block at a time; gates see the rows themselves. What straight
// tiles next to them give is added afterwards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "curve_lines.hpp"
#include "curves.hpp"
#include "flat_tiles.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"
#include "split_gate.hpp"
#include "tiles.hpp"

namespace svmosaic {

// Rows coded and scored together: enough that a tile meets some thirty of its rows, so that fetching its weights is
// shared, within bounds.
template <class T>
inline int64_t score_block_rows(const Tiles<T>& tiles, int64_t width) {
  // Where most tiles are numbers, what counts is that the codes stay in the first-level cache.
  const int64_t n_seeing = tiles.n_seeing + (tiles.flat ? tiles.flat->tiles.n_seeing : 0);
  if (n_seeing < tiles.n_tiles / 2) return kGateBlock;
  return std::clamp<int64_t>(32 * tiles.n_tiles / std::max<int64_t>(width, 1), 8 * kGateBlock, 64 * kGateBlock);
}
// Rows scored on all tiles at a time.
constexpr int64_t kAllBlock = 8 * kRowsAtOnce;

// Numbers of one row each, by their addresses.
template <class T>
struct RowBuffers {
  std::vector<T> data;
  std::vector<T*> row;

  RowBuffers(int64_t n_rows, int64_t n) : data(n_rows * n), row(n_rows) {
    for (int64_t r = 0; r < n_rows; ++r) row[r] = data.data() + r * n;
  }
};

template <class T>
struct ScoreScratch {
  std::vector<int32_t> tile, listed, pair, pair_row, many;  // `many`: rows that are scored on all tiles
  std::vector<double> weight;
  std::vector<int64_t> start;
  std::vector<const T*> row;
  RowBuffers<T> by_tile, on_all;
  std::vector<double> margins, exponentials;  // of the pairs of a row, or of the rows of a tile
  CurveScratch<T> curves;
  std::vector<T> lines;
  std::unique_ptr<ScoreScratch<T>> flat;  // for the straight tiles, if they stand apart

  ScoreScratch(const Tiles<T>& tiles, int64_t n_rows, int64_t width)
      : tile(n_rows * width), listed(n_rows * width), pair(tiles.few > 0 ? n_rows * width : 0), pair_row(n_rows), many(n_rows), weight(n_rows * width),
        start(tiles.n_seeing + 1), row(n_rows), by_tile(tiles.few > 0 ? n_rows : 0, tiles.padded()),
        on_all(tiles.few < width ? std::min(n_rows, kAllBlock) : 0, tiles.all.padded()),
        margins(std::max(n_rows, width) * tiles.n_outputs),
        exponentials(tiles.link == Link::identity ? 0 : 2 * padded_width(margins.size())),
        flat(tiles.flat ? std::make_unique<ScoreScratch<T>>(tiles.flat->tiles, n_rows, width) : nullptr) {}
};

// Multiply-adds of a row that gives weight to `width` tiles, about.
template <class T>
inline int64_t score_cost(const Tiles<T>& tiles, int64_t width) {
  return tiles.cost(width) + (tiles.flat ? tiles.flat->tiles.cost(width) : 0);
}

// margin = scores + intercept on the k-th seeing tile
template <class T>
inline void margins_of(const Tiles<T>& tiles, int64_t k, const T* scores, double* margin) {
  const T* intercept = tiles.intercept.data() + k * tiles.n_outputs;
  for (int64_t c = 0; c < tiles.n_outputs; ++c) margin[c] = static_cast<double>(scores[c]) + intercept[c];
}

inline void add_weighted(double weight, const double* linked, int64_t n, double* out) {
  for (int64_t c = 0; c < n; ++c) out[c] += weight * linked[c];
}

// Scores of the m rows listed in `rows`, counted from `begin`, on all tiles.
template <class T>
inline void all_scores(const Tiles<T>& tiles, const DenseRows<T>& x, int64_t begin, const int32_t* rows, int64_t m,
                       ScoreScratch<T>& scratch) {
  for (int64_t r = 0; r < m; ++r) scratch.row[r] = x.data + (begin + rows[r]) * x.stride;
  multiply_dense(scratch.row.data(), m, tiles.all, scratch.on_all.row.data());
}

template <class T>
inline void all_scores(const Tiles<T>& tiles, const SparseRows<T>& x, int64_t begin, const int32_t* rows, int64_t m,
                       ScoreScratch<T>& scratch) {
  multiply_sparse(x, begin, rows, m, tiles.all, scratch.on_all.row.data());
}

template <class T>
inline void all_scores(const Tiles<T>& tiles, const CurveRows<T>& x, int64_t, const int32_t* rows, int64_t m,
                       ScoreScratch<T>& scratch) {
  multiply_curves(x, rows, m, tiles.all, scratch.on_all.row.data());
}

// Scores of the rows of m pairs on one tile.
template <class T>
inline void tile_scores(const Tiles<T>& tiles, int64_t k, const DenseRows<T>& x, int64_t begin, const int32_t* pairs,
                        int64_t m, int64_t width, ScoreScratch<T>& scratch) {
  if (tiles.panels.empty()) {
    for (int64_t p = 0; p < m; ++p)
      for (int64_t c = 0; c < tiles.n_outputs; ++c)
        scratch.by_tile.row[p][c] = dot(x.data + (begin + pairs[p] / width) * x.stride,
                                  tiles.coef.data() + (k * tiles.n_outputs + c) * tiles.n_features, tiles.n_features);
    return;
  }
  for (int64_t p = 0; p < m; ++p) scratch.row[p] = x.data + (begin + pairs[p] / width) * x.stride;
  multiply_dense(scratch.row.data(), m, tiles.panels[k], scratch.by_tile.row.data());
}

template <class T>
inline void tile_scores(const Tiles<T>& tiles, int64_t k, const SparseRows<T>& x, int64_t begin, const int32_t* pairs,
                        int64_t m, int64_t width, ScoreScratch<T>& scratch) {
  for (int64_t p = 0; p < m; ++p) scratch.pair_row[p] = static_cast<int32_t>(pairs[p] / width);
  if (!tiles.panels.empty())
    return multiply_sparse(x, begin, scratch.pair_row.data(), m, tiles.panels[k], scratch.by_tile.row.data());
  for (int64_t p = 0; p < m; ++p) {
    const int64_t i = begin + scratch.pair_row[p];
    for (int64_t c = 0; c < tiles.n_outputs; ++c) {
      const T* w = tiles.coef.data() + (k * tiles.n_outputs + c) * tiles.n_features;
      T sum = 0;
      for (int64_t q = x.indptr[i]; q < x.indptr[i + 1]; ++q) sum += x.data[q] * w[x.indices[q]];
      scratch.by_tile.row[p][c] = sum;
    }
  }
}

template <class T>
inline void tile_scores(const Tiles<T>& tiles, int64_t k, const CurveRows<T>& x, int64_t, const int32_t* pairs,
                        int64_t m, int64_t width, ScoreScratch<T>& scratch) {
  if (tiles.panels.empty()) {
    for (int64_t p = 0; p < m; ++p)
      for (int64_t c = 0; c < tiles.n_outputs; ++c)
        scratch.by_tile.row[p][c] = x.dot(pairs[p] / width, tiles.coef.data() + (k * tiles.n_outputs + c) * tiles.n_features);
    return;
  }
  for (int64_t p = 0; p < m; ++p) scratch.pair_row[p] = static_cast<int32_t>(pairs[p] / width);
  multiply_curves(x, scratch.pair_row.data(), m, tiles.panels[k], scratch.by_tile.row.data());
}

// What a row that gives this weight to this tile needs to see it: its place, or -1 where there is nothing to see.
template <class T>
inline int32_t seeing_tile(const Tiles<T>& tiles, const int32_t* tile, const double* weight, int64_t p) {
  return weight && weight[p] == 0 ? -1 : tiles.place[tile[p]];
}

// Add what the tiles that are only a number give to a row, and list the pairs of the others; how many those are.
template <class T>
inline int64_t list_seeing(const Tiles<T>& tiles, const int32_t* tile, const double* weight, int64_t begin, int64_t end,
                           int32_t* listed, double* out) {
  int64_t n = 0;
  double first = 0;  // of the first output, in a register
  for (int64_t p = begin; p < end; ++p) {
    const double w = weight ? weight[p] : 1.0;
    if (tiles.place[tile[p]] >= 0) {
      if (w != 0) listed[n++] = static_cast<int32_t>(p);
      continue;
    }
    const double* constant = tiles.constant.data() + tile[p] * tiles.n_outputs;
    first += w * constant[0];
    for (int64_t c = 1; c < tiles.n_outputs; ++c) out[c] += w * constant[c];
  }
  out[0] += first;
  return n;
}

// Add up the rows listed, each on the tiles that it gives weight to, from the products with all of them.
template <class T, class Rows>
inline void score_on_all(const Tiles<T>& tiles, const Rows& x, int64_t begin, const int32_t* rows, int64_t n,
                         const int32_t* tile, const double* weight, int64_t width, ScoreScratch<T>& scratch,
                         double* out) {
  for (int64_t first = 0; first < n; first += kAllBlock) {
    const int64_t m = std::min(kAllBlock, n - first);
    all_scores(tiles, x, begin, rows + first, m, scratch);
    for (int64_t r = 0; r < m; ++r) {
      const int64_t i = rows[first + r], n_outputs = tiles.n_outputs;
      double* margin = scratch.margins.data();
      int64_t needed = 0;
      for (int64_t p = i * width; p < (i + 1) * width; ++p)
        if (const int64_t k = seeing_tile(tiles, tile, weight, p); k >= 0)
          margins_of(tiles, k, scratch.on_all.row[r] + k * n_outputs, margin + needed++ * n_outputs);
      link_all(tiles.link, margin, needed * n_outputs, scratch.exponentials.data());
      for (int64_t p = i * width; p < (i + 1) * width; ++p) {
        if (seeing_tile(tiles, tile, weight, p) < 0) continue;
        add_weighted(weight ? weight[p] : 1.0, margin, n_outputs, out + i * n_outputs);
        margin += n_outputs;
      }
    }
  }
}

// The same tile by tile, for the pairs sorted by tile in the scratch.
template <class T, class Rows>
inline void score_by_tile(const Tiles<T>& tiles, const Rows& x, int64_t begin, const double* weight, int64_t width,
                          ScoreScratch<T>& scratch, double* out) {
  const int64_t room = scratch.by_tile.row.size();
  int64_t from = 0;
  for (int64_t k = 0; k < tiles.n_seeing; ++k) {
    // At most what the scratch has room for, should codes name a tile twice.
    for (const int64_t end = scratch.start[k]; from < end;) {
      const int64_t m = std::min(room, end - from);
      const int32_t* pairs = scratch.pair.data() + from;
      const int64_t n_outputs = tiles.n_outputs;
      double* margin = scratch.margins.data();
      tile_scores(tiles, k, x, begin, pairs, m, width, scratch);
      for (int64_t p = 0; p < m; ++p) margins_of(tiles, k, scratch.by_tile.row[p], margin + p * n_outputs);
      link_all(tiles.link, margin, m * n_outputs, scratch.exponentials.data());
      for (int64_t p = 0; p < m; ++p)
        add_weighted(weight ? weight[pairs[p]] : 1.0, margin + p * n_outputs, n_outputs,
                     out + pairs[p] / width * n_outputs);
      from += m;
    }
  }
}

// Add to out the scores of n rows from `begin` on, as the tiles see them, given their codes.
template <class T, class Rows>
SVMOSAIC_CLONES void score_seen(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                                const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  std::fill(scratch.start.begin(), scratch.start.end(), 0);
  int64_t n_many = 0, n_listed = 0;
  for (int64_t r = 0; r < n; ++r) {
    int32_t* listed = scratch.listed.data() + n_listed;
    const int64_t needed = list_seeing(tiles, tile, weight, r * width, (r + 1) * width, listed, out + r * tiles.n_outputs);
    if (needed > tiles.few) {
      scratch.many[n_many++] = static_cast<int32_t>(r);
      continue;
    }
    for (int64_t q = 0; q < needed; ++q) ++scratch.start[tiles.place[tile[listed[q]]] + 1];
    n_listed += needed;
  }
  if (n_many > 0) score_on_all(tiles, x, begin, scratch.many.data(), n_many, tile, weight, width, scratch, out);
  if (n_many == n) return;
  for (int64_t k = 0; k < tiles.n_seeing; ++k) scratch.start[k + 1] += scratch.start[k];
  for (int64_t q = 0; q < n_listed; ++q) {
    const int32_t p = scratch.listed[q];
    scratch.pair[scratch.start[tiles.place[tile[p]]]++] = p;
  }
  score_by_tile(tiles, x, begin, weight, width, scratch, out);
}

// The same if one tile at most sees a row, and only dense rows with curves are given.
template <class T>
SVMOSAIC_CLONES void score_lines(const Tiles<T>& tiles, const DenseRows<T>& x, int64_t begin, int64_t n,
                                 const int32_t* tile, const double* weight, int64_t width, ScoreScratch<T>& scratch,
                                 double* out) {
  const int64_t n_outputs = tiles.n_outputs;
  int32_t* place = scratch.many.data();  // rows that no tile sees are given the first
  for (int64_t r = 0; r < n; ++r) place[r] = tiles.n_seeing == 1 ? 0 : std::max(tiles.place[tile[r]], 0);
  sum_curves(*tiles.lines, *tiles.curves, x, begin, n, place, scratch.lines);
  double* margin = scratch.margins.data();
  for (int64_t r = 0; r < n; ++r) {
    int32_t* listed = scratch.listed.data();
    const int64_t needed =
        list_seeing(tiles, tile, weight, r * width, (r + 1) * width, listed, out + r * n_outputs);
    if (needed == 0) continue;
    margins_of(tiles, place[r], scratch.lines.data() + r * n_outputs, margin);
    link_all(tiles.link, margin, n_outputs, scratch.exponentials.data());
    for (int64_t q = 0; q < needed; ++q)
      add_weighted(weight ? weight[listed[q]] : 1.0, margin, n_outputs, out + r * n_outputs);
  }
}

// The same of the rows as they are given.
template <class T, class Rows>
SVMOSAIC_CLONES void score_block(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                                 const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  bool done = false;
  if constexpr (std::is_same_v<Rows, DenseRows<T>>)
    if (tiles.lines && (tiles.n_seeing == 1 || width == 1)) {
      score_lines(tiles, x, begin, n, tile, weight, width, scratch, out);
      done = true;
    }
  if (!done && tiles.curves && tiles.n_seeing > 0)
    score_seen(tiles, seen_by(*tiles.curves, x, begin, n, scratch.curves), 0, n, tile, weight, width, scratch, out);
  else if (!done)
    score_seen(tiles, x, begin, n, tile, weight, width, scratch, out);
  if (tiles.flat)
    score_seen(tiles.flat->tiles, tiles.flat->seen(x, begin, n, scratch.flat->curves), 0, n, tile, weight, width,
               *scratch.flat, out);
}

// ---- one row ------------------------------------------------------------------------------------------

// What one dense row needs, kept between calls.
template <class T>
struct RowScratch {
  typename SplitGate<T>::Scratch gate;
  ScoreScratch<T> score;
  std::vector<T> x;
  std::vector<double> out;

  RowScratch(const SplitGate<T>& split, const Tiles<T>& tiles)
      : gate(split.scratch(1)), score(tiles, 1, split.width), x(tiles.n_inputs()), out(tiles.n_outputs) {}
};

// Add to out the scores of a row, as the tiles see it, given its codes.
template <class T, class Rows>
inline void score_seen_row(const Tiles<T>& tiles, const Rows& x, const int32_t* tile, const double* weight,
                           int64_t width, ScoreScratch<T>& scratch, double* out) {
  const int32_t first = 0;
  int32_t* listed = scratch.listed.data();
  const int64_t needed = list_seeing(tiles, tile, weight, 0, width, listed, out);
  if (needed > tiles.few) return score_on_all(tiles, x, 0, &first, 1, tile, weight, width, scratch, out);
  for (int64_t q = 0; q < needed; ++q) {
    const int64_t a = listed[q], k = tiles.place[tile[a]];
    double* margin = scratch.margins.data();
    tile_scores(tiles, k, x, 0, &first, 1, 1, scratch);
    margins_of(tiles, k, scratch.by_tile.row[0], margin);
    link_all(tiles.link, margin, tiles.n_outputs, scratch.exponentials.data());
    add_weighted(weight[a], margin, tiles.n_outputs, out);
  }
}

template <class T>
SVMOSAIC_CLONES void score_coded_row(const Tiles<T>& tiles, const DenseRows<T>& x, int64_t width,
                                     RowScratch<T>& scratch) {
  ScoreScratch<T>& buffers = scratch.score;
  const int32_t* tile = buffers.tile.data();
  const double* weight = buffers.weight.data();
  double* out = scratch.out.data();
  if (tiles.lines)
    score_lines(tiles, x, 0, 1, tile, weight, width, buffers, out);
  else if (tiles.curves && tiles.n_seeing > 0)
    score_seen_row(tiles, seen_by(*tiles.curves, x, 0, 1, buffers.curves), tile, weight, width, buffers, out);
  else
    score_seen_row(tiles, x, tile, weight, width, buffers, out);
  if (tiles.flat)
    score_seen_row(tiles.flat->tiles, tiles.flat->seen(x, 0, 1, buffers.flat->curves), tile, weight, width,
                   *buffers.flat, out);
}

template <class T>
void score_row(const SplitGate<T>& split, const Tiles<T>& tiles, const T* data, RowScratch<T>& scratch) {
  const DenseRows<T> x{data, 1, tiles.n_inputs(), tiles.n_inputs(), 0.0};
  std::fill(scratch.out.begin(), scratch.out.end(), 0.0);
  split.code(x, 0, 1, scratch.gate, tiles.constant, tiles.n_outputs, scratch.score.tile.data(),
             scratch.score.weight.data(), scratch.out.data());
  if (split.width > 0) score_coded_row(tiles, x, split.width, scratch);
}

// ---- all rows, in parallel over pieces --------------------------------------------------------------

// Call block(begin, n, scratch) over [0, n_rows) in blocks of at most `block_rows`, with one scratch a piece.
// Blocks are cut by the number of rows and never by that of threads: a compiler may round the last rows of a block
// otherwise than those before. Where rows are few, blocks are small, so that there is one for many threads.
template <class MakeScratch, class Block>
void for_blocks(int64_t n_rows, int64_t cost, int64_t block_rows, int n_threads, const MakeScratch& make_scratch,
                const Block& block) {
  const int64_t size = std::min(block_rows, std::max<int64_t>(96, n_rows / 64));
  const int64_t n_blocks = (n_rows + size - 1) / size;
  // A thread has four pieces or more, so that starting it pays.
  const int64_t n_workers = std::min<int64_t>(n_threads, pieces_of(n_rows, cost) / 4);
  const int64_t n_pieces = n_workers <= 1 ? 1 : std::min(4 * n_workers, n_blocks);
  parallel_for(n_pieces, static_cast<int>(n_workers), [&](int64_t t) {
    const Piece piece(n_blocks, n_pieces, t);
    if (piece.begin == piece.end) return;
    auto scratch = make_scratch(std::min(size, n_rows));
    for (int64_t b = piece.begin; b < piece.end; ++b)
      block(b * size, std::min(size, n_rows - b * size), scratch);
  });
}

template <class T, class Rows>
void score_all(const SplitGate<T>& split, int64_t cost, const Tiles<T>& tiles, const Rows& x, double* out,
               int n_threads) {
  struct Scratch {
    typename SplitGate<T>::Scratch gate;
    ScoreScratch<T> score;
  };
  const int64_t width = split.width;
  for_blocks(
      x.n_rows, cost, score_block_rows(tiles, width), n_threads,
      [&](int64_t n) { return Scratch{split.scratch(n), ScoreScratch<T>(tiles, n, width)}; },
      [&](int64_t begin, int64_t n, Scratch& s) {
        double* scores = out + begin * tiles.n_outputs;
        std::fill(scores, scores + n * tiles.n_outputs, 0.0);
        int32_t* tile = s.score.tile.data();
        double* weight = s.score.weight.data();
        split.code(x, begin, n, s.gate, tiles.constant, tiles.n_outputs, tile, weight, scores);
        if (width > 0) score_block(tiles, x, begin, n, tile, weight, width, s.score, scores);
      });
}

template <class T, class Rows>
void score_all(const Tiles<T>& tiles, const Rows& x, const int32_t* tile, const double* weight, int64_t width,
               double* out, int n_threads) {
  for_blocks(
      x.n_rows, score_cost(tiles, width), score_block_rows(tiles, width), n_threads,
      [&](int64_t n) { return ScoreScratch<T>(tiles, n, width); },
      [&](int64_t begin, int64_t n, ScoreScratch<T>& s) {
        double* scores = out + begin * tiles.n_outputs;
        std::fill(scores, scores + n * tiles.n_outputs, 0.0);
        score_block(tiles, x, begin, n, tile + begin * width, weight ? weight + begin * width : nullptr, width, s, scores);
      });
}

template <class T, class Rows>
void code_all(const Gate<T>& gate, const Rows& x, int32_t* tile, double* weight, int n_threads) {
  for_blocks(
      x.n_rows, gate.cost(), kGateBlock, n_threads, [&](int64_t n) { return gate.scratch(n); },
      [&](int64_t begin, int64_t n, std::unique_ptr<typename Gate<T>::Scratch>& s) {
        gate.code(x, begin, n, *s, tile + begin * gate.width, weight + begin * gate.width);
      });
}

}  // namespace svmosaic

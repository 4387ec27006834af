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
// A tile without weights, only a bias, is a number: it is added while codes are read, and is no pair.
//
// Tiles with curves see rows with their bins found, a block at a time; gates see the rows themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "curves.hpp"
#include "exponential.hpp"
#include "gate.hpp"
#include "loss.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

enum class Link { identity, vote, posterior };

// s[i] = link(s[i]) for n margins, many exponentials at once; `room` has space for 2 * padded_width(n) numbers.
inline void link_all(Link link, double* s, int64_t n, double* room) {
  if (link == Link::identity) return;
  double *in_favour = room, *against = room + padded_width(n);
  for (int64_t i = 0; i < n; ++i) {
    in_favour[i] = -slack_of(1, s[i]);
    against[i] = -slack_of(1, -s[i]);
  }
  exp_all(in_favour, n);
  exp_all(against, n);
  if (link == Link::vote)
    for (int64_t i = 0; i < n; ++i) s[i] = in_favour[i] - against[i];
  else
    for (int64_t i = 0; i < n; ++i) s[i] = (in_favour[i] - against[i]) / (in_favour[i] + against[i]);
}

template <class T>
struct Tiles {
  int64_t n_tiles, n_outputs, n_features;
  Link link;
  int64_t few;                   // rows with at most so many seeing tiles are scored tile by tile, others on all
  // Tiles with weights see the row, and are counted apart from those that are only a number.
  int64_t n_seeing = 0;
  std::vector<int32_t> place;    // by tile: its place among the seeing ones, or -1
  std::vector<double> constant;  // [tile][output]: what a tile adds that sees nothing
  std::vector<T> intercept;      // [seeing tile][output]
  Panels<T> all;                 // every (seeing tile, output) in one matrix, if some rows may need it
  // For tile by tile, one of the two: a matrix per tile; plain [seeing tile][output][feature].
  std::vector<Panels<T>> panels;
  std::vector<T> coef;
  std::optional<Curves<T>> curves;  // if there are none, tiles are linear in the rows

  // With fewer outputs than this, dot products waste less than a padded panel.
  static constexpr int64_t kFewOutputs = 5;

  // `sloped`: the tiles that the `n_sloped` weights given belong to, increasing; null for all. `width`: how many tiles
  // a row names; `posterior`: it may give weight to any number of them.
  Tiles(const double* coef_in, const int32_t* sloped, int64_t n_sloped, const double* intercept_in, int64_t n_tiles,
        int64_t n_outputs, int64_t n_features, Link link, int64_t width, bool posterior,
        std::optional<Curves<T>>&& curves_in = std::nullopt)
      : n_tiles(n_tiles), n_outputs(n_outputs), n_features(n_features), link(link), few(0),
        curves(std::move(curves_in)) {
    keep(coef_in, sloped, n_sloped, intercept_in);
    few = affordable();
    if (!posterior) few = std::min(width, n_seeing) <= few ? n_seeing : 0;
    if (few >= n_seeing) few = std::numeric_limits<int64_t>::max();
    if (few < n_seeing) all = Panels<T>::pack(coef.data(), n_seeing * n_outputs, n_features, n_features);
    if (few > 0 && n_outputs < kFewOutputs) return;
    for (int64_t k = 0; k < (few > 0 ? n_seeing : 0); ++k)
      panels.push_back(Panels<T>::pack(coef.data() + k * n_outputs * n_features, n_outputs, n_features, n_features));
    std::vector<T>().swap(coef);
  }

  // Features of the rows that are given to be scored.
  int64_t n_inputs() const { return curves ? curves->pieces.n_inputs : n_features; }

  // Scores of a row on one tile, padded.
  int64_t padded() const { return panels.empty() ? n_outputs : panels[0].padded(); }

  // Multiply-adds of a row that gives weight to `width` tiles, about.
  int64_t cost(int64_t width) const {
    width = std::min(width, n_seeing);
    return (curves ? curves->work() : n_features) * (width <= few ? width * padded() : all.padded());
  }

 private:
  // Tell the tiles that see the row from those that are only a number, and keep what each is made of.
  void keep(const double* coef_in, const int32_t* sloped, int64_t n_sloped, const double* intercept_in) {
    const int64_t size = n_outputs * n_features;
    constant.assign(intercept_in, intercept_in + n_tiles * n_outputs);
    std::vector<double> room(2 * padded_width(constant.size()));
    link_all(link, constant.data(), constant.size(), room.data());
    place.assign(n_tiles, -1);
    for (int64_t q = 0; q < n_sloped; ++q) {
      const int64_t k = sloped ? sloped[q] : q;
      const double *first = coef_in + q * size, *last = first + size;
      if (std::all_of(first, last, [](double w) { return w == 0; })) continue;
      place[k] = static_cast<int32_t>(n_seeing++);
      coef.insert(coef.end(), first, last);
      intercept.insert(intercept.end(), intercept_in + k * n_outputs, intercept_in + (k + 1) * n_outputs);
    }
  }

  // Multiply-adds of whole vectors per row, with what finding a pair and adding up a dot product cost beside
  // them, measured on a server of 2023.
  static constexpr double kPair = 12, kDot = 12;

  // With more tiles than this, a row is scored on all of them at less cost.
  int64_t affordable() const {
    constexpr int64_t lanes = Panels<T>::kVector;
    const auto vectors = [](int64_t n) { return n <= lanes ? 1.0 : 2.0 * ((n + 2 * lanes - 1) / (2 * lanes)); };
    const int64_t work = curves ? curves->work() : n_features;
    // Rows share the weights that are loaded for a matrix product, but not the values of their curves.
    const double whole = (curves ? 1.5 : 1.0) * work * vectors(n_seeing * n_outputs);
    const double by_panel = work * vectors(n_outputs);
    const double steps = curves ? work : work / lanes + work % lanes;
    const double by_dot = n_outputs * (steps + kDot);
    const double pair = kPair + (n_outputs < kFewOutputs ? by_dot : by_panel);
    return static_cast<int64_t>(std::ceil(whole / pair)) - 1;  // the last that is cheaper, not just as cheap
  }
};

// Rows coded and scored together: enough that a tile meets some thirty of its rows, so that fetching its weights is
// shared, within bounds.
template <class T>
inline int64_t score_block_rows(const Tiles<T>& tiles, int64_t width) {
  // Where most tiles are numbers, what counts is that the codes stay in the first-level cache.
  if (tiles.n_seeing < tiles.n_tiles / 2) return kGateBlock;
  return std::clamp<int64_t>(32 * tiles.n_tiles / width, 8 * kGateBlock, 64 * kGateBlock);
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

  ScoreScratch(const Tiles<T>& tiles, int64_t n_rows, int64_t width)
      : tile(n_rows * width), listed(n_rows * width), pair(tiles.few > 0 ? n_rows * width : 0), pair_row(n_rows), many(n_rows), weight(n_rows * width),
        start(tiles.n_seeing + 1), row(n_rows), by_tile(tiles.few > 0 ? n_rows : 0, tiles.padded()),
        on_all(tiles.few < width ? std::min(n_rows, kAllBlock) : 0, tiles.all.padded()),
        margins(std::max(n_rows, width) * tiles.n_outputs),
        exponentials(tiles.link == Link::identity ? 0 : 2 * padded_width(margins.size())) {}
};

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
  for (int64_t r = 0; r < m; ++r) multiply_sparse(x, begin + rows[r], tiles.all, scratch.on_all.row[r]);
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
  for (int64_t p = 0; p < m; ++p) {
    const int64_t i = begin + pairs[p] / width;
    if (!tiles.panels.empty()) {
      multiply_sparse(x, i, tiles.panels[k], scratch.by_tile.row[p]);
      continue;
    }
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

// out of n rows from `begin` on, as the tiles see them, given their codes
template <class T, class Rows>
inline void score_seen(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                                 const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  std::fill(out, out + n * tiles.n_outputs, 0.0);
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

// The same of the rows as they are given.
template <class T, class Rows>
SVMOSAIC_CLONES void score_block(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                                 const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  if (tiles.curves)
    score_seen(tiles, seen_by(*tiles.curves, x, begin, n, scratch.curves), 0, n, tile, weight, width, scratch, out);
  else
    score_seen(tiles, x, begin, n, tile, weight, width, scratch, out);
}

// ---- one row ------------------------------------------------------------------------------------------

// What one dense row needs, kept between calls.
template <class T>
struct RowScratch {
  std::unique_ptr<typename Gate<T>::Scratch> gate;
  ScoreScratch<T> score;
  std::vector<T> x;
  std::vector<double> out;

  RowScratch(const Gate<T>* gate_of, const Tiles<T>& tiles)
      : gate(gate_of ? gate_of->scratch(1) : nullptr), score(tiles, 1, gate_of ? gate_of->width : 1),
        x(tiles.n_inputs()), out(tiles.n_outputs) {}
};

template <class T, class Rows>
inline void score_seen_row(const Tiles<T>& tiles, const Rows& x, int64_t width, RowScratch<T>& scratch) {
  const int32_t* tile = scratch.score.tile.data();
  const double* weight = scratch.score.weight.data();
  const int32_t first = 0;
  std::fill(scratch.out.begin(), scratch.out.end(), 0.0);
  int32_t* listed = scratch.score.listed.data();
  const int64_t needed = list_seeing(tiles, tile, weight, 0, width, listed, scratch.out.data());
  if (needed > tiles.few)
    return score_on_all(tiles, x, 0, &first, 1, tile, weight, width, scratch.score, scratch.out.data());
  for (int64_t q = 0; q < needed; ++q) {
    const int64_t a = listed[q], k = tiles.place[tile[a]];
    double* margin = scratch.score.margins.data();
    tile_scores(tiles, k, x, 0, &first, 1, 1, scratch.score);
    margins_of(tiles, k, scratch.score.by_tile.row[0], margin);
    link_all(tiles.link, margin, tiles.n_outputs, scratch.score.exponentials.data());
    add_weighted(weight[a], margin, tiles.n_outputs, scratch.out.data());
  }
}

template <class T>
SVMOSAIC_CLONES void score_coded_row(const Tiles<T>& tiles, const DenseRows<T>& x, int64_t width,
                                     RowScratch<T>& scratch) {
  if (tiles.curves)
    score_seen_row(tiles, seen_by(*tiles.curves, x, 0, 1, scratch.score.curves), width, scratch);
  else
    score_seen_row(tiles, x, width, scratch);
}

template <class T>
void score_row(const Gate<T>* gate, const Tiles<T>& tiles, const T* data, RowScratch<T>& scratch) {
  const DenseRows<T> x{data, 1, tiles.n_inputs(), tiles.n_inputs(), 0.0};
  if (gate) {
    gate->code(x, 0, 1, *scratch.gate, scratch.score.tile.data(), scratch.score.weight.data());
  } else {
    scratch.score.tile[0] = 0;
    scratch.score.weight[0] = 1;
  }
  score_coded_row(tiles, x, gate ? gate->width : 1, scratch);
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
void score_all(const Gate<T>& gate, const Tiles<T>& tiles, const Rows& x, double* out, int n_threads) {
  struct Scratch {
    std::unique_ptr<typename Gate<T>::Scratch> gate;
    ScoreScratch<T> score;
  };
  const int64_t width = gate.width;
  for_blocks(
      x.n_rows, gate.cost() + tiles.cost(width), score_block_rows(tiles, width), n_threads,
      [&](int64_t n) { return Scratch{gate.scratch(std::min(n, kGateBlock)), ScoreScratch<T>(tiles, n, width)}; },
      [&](int64_t begin, int64_t n, Scratch& s) {
        for (int64_t r = 0; r < n; r += kGateBlock)
          gate.code(x, begin + r, std::min(kGateBlock, n - r), *s.gate, s.score.tile.data() + r * width,
                    s.score.weight.data() + r * width);
        score_block(tiles, x, begin, n, s.score.tile.data(), s.score.weight.data(), width, s.score,
                    out + begin * tiles.n_outputs);
      });
}

template <class T, class Rows>
void score_all(const Tiles<T>& tiles, const Rows& x, const int32_t* tile, const double* weight, int64_t width,
               double* out, int n_threads) {
  for_blocks(
      x.n_rows, tiles.cost(width), score_block_rows(tiles, width), n_threads,
      [&](int64_t n) { return ScoreScratch<T>(tiles, n, width); },
      [&](int64_t begin, int64_t n, ScoreScratch<T>& s) {
        score_block(tiles, x, begin, n, tile + begin * width, weight ? weight + begin * width : nullptr, width, s,
                    out + begin * tiles.n_outputs);
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

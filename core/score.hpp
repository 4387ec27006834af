// Scoring a mosaic:  out[i, c] = sum_a weight[i, a] * link( <w[tile[i, a], c], x_i> + b[tile[i, a], c] )
//
// The link is the identity, or the vote exp(-hinge(s)) - exp(-hinge(-s)) of the mixture papers.
//
// Either only the tiles that a row's gate selects are computed: rows are coded in blocks and their (row,
// tile) pairs sorted by tile, so that a tile's weights are fetched once for all the rows that need them. Or
// all tiles are computed by one matrix product, where that is cheaper: when a row selects most of them, or
// when the tiles are so small that looking them up costs more than multiplying.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

inline double vote_of(double s) {
  const double against = s < 1 ? 1 - s : 0, in_favour = s > -1 ? 1 + s : 0;
  return std::exp(-against) - std::exp(-in_favour);
}

template <class T>
struct Tiles {
  int64_t n_tiles, n_outputs, n_features;
  bool vote;
  std::vector<T> intercept;        // [tile][output]
  // One of three: every (tile, output) in one matrix; a matrix a tile; plain [tile][output][feature].
  Panels<T> all;
  std::vector<Panels<T>> panels;
  std::vector<T> coef;

  // With fewer outputs than this, dot products waste less than a padded panel.
  static constexpr int64_t kFewOutputs = 5;

  // `width`: how many tiles a row selects.
  Tiles(const double* coef_in, const double* intercept_in, int64_t n_tiles, int64_t n_outputs, int64_t n_features,
        bool vote, int64_t width)
      : n_tiles(n_tiles), n_outputs(n_outputs), n_features(n_features), vote(vote) {
    intercept.assign(intercept_in, intercept_in + n_tiles * n_outputs);
    coef.assign(coef_in, coef_in + n_tiles * n_outputs * n_features);
    if (all_is_cheaper(width)) {
      all = Panels<T>::pack(coef.data(), n_tiles * n_outputs, n_features, n_features);
    } else if (n_outputs >= kFewOutputs) {
      for (int64_t k = 0; k < n_tiles; ++k)
        panels.push_back(Panels<T>::pack(coef.data() + k * n_outputs * n_features, n_outputs, n_features, n_features));
    } else {
      return;
    }
    std::vector<T>().swap(coef);
  }

  bool takes_all() const { return all.n > 0; }

  // Scores of a row on one tile, padded.
  int64_t padded() const {
    if (takes_all()) return all.padded();
    return panels.empty() ? n_outputs : panels[0].padded();
  }

 private:
  // Multiply-adds of whole vectors a row, with what finding a pair and adding up a dot product cost beside
  // them, measured on a server of 2023.
  static constexpr double kPair = 12, kDot = 12;

  bool all_is_cheaper(int64_t width) const {
    constexpr int64_t lanes = Panels<T>::kVector;
    const auto vectors = [](int64_t n) { return n <= lanes ? 1.0 : 2.0 * ((n + 2 * lanes - 1) / (2 * lanes)); };
    const double whole = n_features * vectors(n_tiles * n_outputs);
    const double by_panel = n_features * vectors(n_outputs);
    const double by_dot = n_outputs * (n_features / lanes + n_features % lanes + kDot);
    return whole <= width * (kPair + (n_outputs < kFewOutputs ? by_dot : by_panel));
  }
};

// Rows coded and scored together: enough that a tile meets some thirty of its rows, so that fetching its weights is
// shared, within bounds.
inline int64_t score_block_rows(int64_t n_tiles, int64_t width) {
  return std::clamp<int64_t>(32 * n_tiles / width, 8 * GateScratch<float>::kBlock, 64 * GateScratch<float>::kBlock);
}
// Rows scored on all tiles at a time.
constexpr int64_t kAllBlock = 8 * kRowsAtOnce;

template <class T>
struct ScoreScratch {
  std::vector<int32_t> tile, pair;
  std::vector<double> weight;
  std::vector<int64_t> start;
  std::vector<T> scores;
  std::vector<const T*> row;
  std::vector<T*> score;

  ScoreScratch(const Tiles<T>& tiles, int64_t n_rows, int64_t width)
      : tile(n_rows * width), weight(n_rows * width) {
    const int64_t n_scores = tiles.takes_all() ? std::min(n_rows, kAllBlock) : n_rows;
    if (!tiles.takes_all()) {
      pair.resize(n_rows * width);
      start.resize(tiles.n_tiles + 1);
    }
    scores.resize(n_scores * tiles.padded());
    row.resize(n_scores);
    score.resize(n_scores);
    for (int64_t r = 0; r < n_scores; ++r) score[r] = scores.data() + r * tiles.padded();
  }
};

// out += weight * link(scores + intercept) on tile k
template <class T>
inline void add_tile(const Tiles<T>& tiles, int64_t k, double weight, const T* scores, double* out) {
  const T* intercept = tiles.intercept.data() + k * tiles.n_outputs;
  for (int64_t c = 0; c < tiles.n_outputs; ++c) {
    const double s = static_cast<double>(scores[c]) + intercept[c];
    out[c] += weight * (tiles.vote ? vote_of(s) : s);
  }
}

template <class T>
inline void all_scores(const Tiles<T>& tiles, const DenseRows<T>& x, int64_t begin, int64_t n,
                       ScoreScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) scratch.row[r] = x.data + (begin + r) * x.stride;
  multiply_dense(scratch.row.data(), n, tiles.all, scratch.score.data());
}

template <class T>
inline void all_scores(const Tiles<T>& tiles, const SparseRows<T>& x, int64_t begin, int64_t n,
                       ScoreScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) multiply_sparse(x, begin + r, tiles.all, scratch.score[r]);
}

// Scores of the m rows listed in `rows` on one tile, tiles.padded() apart.
template <class T>
inline void tile_scores(const Tiles<T>& tiles, int64_t k, const DenseRows<T>& x, int64_t begin, const int32_t* pairs,
                        int64_t m, int64_t width, ScoreScratch<T>& scratch) {
  if (tiles.panels.empty()) {
    for (int64_t p = 0; p < m; ++p)
      for (int64_t c = 0; c < tiles.n_outputs; ++c)
        scratch.score[p][c] = dot(x.data + (begin + pairs[p] / width) * x.stride,
                                  tiles.coef.data() + (k * tiles.n_outputs + c) * tiles.n_features, tiles.n_features);
    return;
  }
  for (int64_t p = 0; p < m; ++p) scratch.row[p] = x.data + (begin + pairs[p] / width) * x.stride;
  multiply_dense(scratch.row.data(), m, tiles.panels[k], scratch.score.data());
}

template <class T>
inline void tile_scores(const Tiles<T>& tiles, int64_t k, const SparseRows<T>& x, int64_t begin, const int32_t* pairs,
                        int64_t m, int64_t width, ScoreScratch<T>& scratch) {
  for (int64_t p = 0; p < m; ++p) {
    const int64_t i = begin + pairs[p] / width;
    if (!tiles.panels.empty()) {
      multiply_sparse(x, i, tiles.panels[k], scratch.score[p]);
      continue;
    }
    for (int64_t c = 0; c < tiles.n_outputs; ++c) {
      const T* w = tiles.coef.data() + (k * tiles.n_outputs + c) * tiles.n_features;
      T sum = 0;
      for (int64_t q = x.indptr[i]; q < x.indptr[i + 1]; ++q) sum += x.data[q] * w[x.indices[q]];
      scratch.score[p][c] = sum;
    }
  }
}

// The same by the matrix of all tiles.
template <class T, class Rows>
inline void score_block_on_all(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                               const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  for (int64_t first = 0; first < n; first += kAllBlock) {
    const int64_t m = std::min(kAllBlock, n - first);
    all_scores(tiles, x, begin + first, m, scratch);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t p = (first + r) * width; p < (first + r + 1) * width; ++p)
        if (!weight || weight[p] != 0)
          add_tile(tiles, tile[p], weight ? weight[p] : 1.0, scratch.score[r] + tile[p] * tiles.n_outputs,
                   out + (first + r) * tiles.n_outputs);
  }
}

// out of n rows from `begin` on, given their codes
template <class T, class Rows>
inline void score_block(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                        const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  std::fill(out, out + n * tiles.n_outputs, 0.0);
  if (tiles.takes_all()) return score_block_on_all(tiles, x, begin, n, tile, weight, width, scratch, out);
  const int64_t n_pairs = n * width;
  std::fill(scratch.start.begin(), scratch.start.end(), 0);
  for (int64_t p = 0; p < n_pairs; ++p) ++scratch.start[tile[p] + 1];
  for (int64_t k = 0; k < tiles.n_tiles; ++k) scratch.start[k + 1] += scratch.start[k];
  for (int64_t p = 0; p < n_pairs; ++p) scratch.pair[scratch.start[tile[p]]++] = static_cast<int32_t>(p);
  int64_t from = 0;
  for (int64_t k = 0; k < tiles.n_tiles; ++k) {
    // At most n pairs at a time: what the scratch has room for, should codes name a tile twice.
    for (const int64_t end = scratch.start[k]; from < end;) {
      const int64_t m = std::min(n, end - from);
      const int32_t* pairs = scratch.pair.data() + from;
      tile_scores(tiles, k, x, begin, pairs, m, width, scratch);
      for (int64_t p = 0; p < m; ++p)
        add_tile(tiles, k, weight ? weight[pairs[p]] : 1.0, scratch.score[p],
                 out + pairs[p] / width * tiles.n_outputs);
      from += m;
    }
  }
}

// One block of rows: codes from the gate, then scores.
template <class T, class Rows>
SVMOSAIC_CLONES void code_and_score(const Gate<T>& gate, const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n,
                                    GateScratch<T>& gate_scratch, ScoreScratch<T>& scratch, double* out) {
  for (int64_t r = 0; r < n; r += GateScratch<T>::kBlock)
    code_block(gate, x, begin + r, std::min(GateScratch<T>::kBlock, n - r), gate_scratch,
               scratch.tile.data() + r * gate.width, scratch.weight.data() + r * gate.width);
  score_block(tiles, x, begin, n, scratch.tile.data(), scratch.weight.data(), gate.width, scratch, out);
}

template <class T, class Rows>
SVMOSAIC_CLONES void score_codes(const Tiles<T>& tiles, const Rows& x, int64_t begin, int64_t n, const int32_t* tile,
                                 const double* weight, int64_t width, ScoreScratch<T>& scratch, double* out) {
  score_block(tiles, x, begin, n, tile, weight, width, scratch, out);
}

template <class T, class Rows>
SVMOSAIC_CLONES void code_rows(const Gate<T>& gate, const Rows& x, int64_t begin, int64_t n, GateScratch<T>& scratch,
                               int32_t* tile, double* weight) {
  code_block(gate, x, begin, n, scratch, tile, weight);
}

// ---- one row ------------------------------------------------------------------------------------------

// What one dense row needs, kept between calls.
template <class T>
struct RowScratch {
  std::unique_ptr<GateScratch<T>> gate;
  ScoreScratch<T> score;
  std::vector<T> x;
  std::vector<double> out;

  RowScratch(const Gate<T>* gate_of, const Tiles<T>& tiles)
      : gate(gate_of ? std::make_unique<GateScratch<T>>(*gate_of, 1) : nullptr),
        score(tiles, 1, gate_of ? gate_of->width : 1), x(tiles.n_features), out(tiles.n_outputs) {}
};

template <class T>
SVMOSAIC_CLONES void score_row(const Gate<T>* gate, const Tiles<T>& tiles, const T* data, RowScratch<T>& scratch) {
  const DenseRows<T> x{data, 1, tiles.n_features, tiles.n_features, 0.0};
  const int64_t width = gate ? gate->width : 1;
  int32_t* tile = scratch.score.tile.data();
  double* weight = scratch.score.weight.data();
  if (gate) {
    code_block(*gate, x, 0, 1, *scratch.gate, tile, weight);
  } else {
    tile[0] = 0;
    weight[0] = 1;
  }
  std::fill(scratch.out.begin(), scratch.out.end(), 0.0);
  if (tiles.takes_all())
    return score_block_on_all(tiles, x, 0, 1, tile, weight, width, scratch.score, scratch.out.data());
  const int32_t first = 0;
  for (int64_t a = 0; a < width; ++a) {
    tile_scores(tiles, tile[a], x, 0, &first, 1, 1, scratch.score);
    add_tile(tiles, tile[a], weight[a], scratch.score.score[0], scratch.out.data());
  }
}

// ---- all rows, in parallel over pieces --------------------------------------------------------------

// Call block(begin, n, scratch) over [0, n_rows) in blocks of at most `block_rows`, with one scratch a piece.
// Rows are scored one by one as far as their bits go, so pieces may be cut by the number of threads: whole for one.
template <class MakeScratch, class Block>
void for_blocks(int64_t n_rows, int64_t cost, int64_t block_rows, int n_threads, const MakeScratch& make_scratch,
                const Block& block) {
  const int64_t n_pieces =
      n_threads <= 1 ? 1 : std::min({pieces_of(n_rows, cost), 4 * int64_t{n_threads}, n_rows / 96 + 1});
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n_rows, n_pieces, t);
    if (piece.begin == piece.end) return;
    auto scratch = make_scratch(std::min(block_rows, piece.end - piece.begin));
    for (int64_t begin = piece.begin; begin < piece.end; begin += block_rows)
      block(begin, std::min(block_rows, piece.end - begin), scratch);
  });
}

template <class T, class Rows>
void score_all(const Gate<T>& gate, const Tiles<T>& tiles, const Rows& x, double* out, int n_threads) {
  struct Scratch {
    GateScratch<T> gate;
    ScoreScratch<T> score;
  };
  const int64_t width = tiles.takes_all() ? 1 : gate.width;
  const int64_t cost = x.n_features * (gate.n_tiles + width * tiles.padded());
  for_blocks(
      x.n_rows, cost, score_block_rows(tiles.n_tiles, gate.width), n_threads,
      [&](int64_t n) { return Scratch{GateScratch<T>(gate, n), ScoreScratch<T>(tiles, n, gate.width)}; },
      [&](int64_t begin, int64_t n, Scratch& s) {
        code_and_score(gate, tiles, x, begin, n, s.gate, s.score, out + begin * tiles.n_outputs);
      });
}

template <class T, class Rows>
void score_all(const Tiles<T>& tiles, const Rows& x, const int32_t* tile, const double* weight, int64_t width,
               double* out, int n_threads) {
  const int64_t cost = x.n_features * (tiles.takes_all() ? 1 : width) * tiles.padded();
  for_blocks(
      x.n_rows, cost, score_block_rows(tiles.n_tiles, width), n_threads,
      [&](int64_t n) { return ScoreScratch<T>(tiles, n, width); },
      [&](int64_t begin, int64_t n, ScoreScratch<T>& s) {
        score_codes(tiles, x, begin, n, tile + begin * width, weight ? weight + begin * width : nullptr, width, s,
                    out + begin * tiles.n_outputs);
      });
}

template <class T, class Rows>
void code_all(const Gate<T>& gate, const Rows& x, int32_t* tile, double* weight, int n_threads) {
  for_blocks(
      x.n_rows, x.n_features * gate.n_tiles, GateScratch<T>::kBlock, n_threads,
      [&](int64_t n) { return GateScratch<T>(gate, n); },
      [&](int64_t begin, int64_t n, GateScratch<T>& s) {
        code_rows(gate, x, begin, n, s, tile + begin * gate.width, weight + begin * gate.width);
      });
}

}  // namespace svmosaic

// Scoring a mosaic:  out[i, c] = sum_a weight[i, a] * link( <tiles[tile[i, a], c], (x_i, bias)> )
//
// The link is the identity, or the vote exp(-hinge(s)) - exp(-hinge(-s)) of the mixture papers.
#pragma once

#include <cmath>
#include <cstdint>

#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

struct Codes {
  const int32_t* tile;
  const double* weight;  // null: all ones
  int64_t width;
};

inline double vote_of(double s) {
  const double against = s < 1 ? 1 - s : 0, in_favour = s > -1 ? 1 + s : 0;
  return std::exp(-against) - std::exp(-in_favour);
}

template <class Rows>
SVMOSAIC_CLONES void score_piece(const Rows& x, const Codes& codes, const double* tiles, int64_t n_outputs, bool vote,
                                 Piece piece, double* out) {
  const int64_t stride = x.n_features + 1;
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    double* scores = out + i * n_outputs;
    for (int64_t c = 0; c < n_outputs; ++c) scores[c] = 0;
    for (int64_t a = 0; a < codes.width; ++a) {
      const double weight = codes.weight ? codes.weight[i * codes.width + a] : 1.0;
      if (weight == 0) continue;
      const double* tile = tiles + codes.tile[i * codes.width + a] * n_outputs * stride;
      for (int64_t c = 0; c < n_outputs; ++c) {
        const double s = x.dot(i, tile + c * stride);
        scores[c] += weight * (vote ? vote_of(s) : s);
      }
    }
  }
}

template <class Rows>
void score(const Rows& x, const Codes& codes, const double* tiles, int64_t n_outputs, bool vote, double* out,
           int n_threads) {
  const int64_t n_pieces = pieces_of(x.n_rows, codes.width * n_outputs * x.n_features);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    score_piece(x, codes, tiles, n_outputs, vote, Piece(x.n_rows, n_pieces, t), out);
  });
}

}  // namespace svmosaic

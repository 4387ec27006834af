// The tiles of a mosaic, packed for scoring.
//
// A tile without weights, only a bias, is a number: it is added while codes are read, and is no pair. In a mosaic with
// curves, tiles that are straight stand apart: see flat_tiles.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "curve_lines.hpp"
#include "curves.hpp"
#include "exponential.hpp"
#include "loss.hpp"
#include "panels.hpp"

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
struct FlatTiles;

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
  std::optional<CurveLines<T>> lines;  // the curves of dense rows, if one tile sees each of them and outputs are few
  std::shared_ptr<const FlatTiles<T>> flat;  // tiles without weights here that have some there

  // Weights of several tiles up to which a row looks up its own one's; more are read tile by tile.
  static constexpr int64_t kMostLookedUp = 1 << 22;
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
    const bool looked_up = width == 1 && !posterior && n_seeing * n_outputs * n_features <= kMostLookedUp;
    if (curves && (n_seeing == 1 || (n_seeing > 1 && looked_up)) && n_outputs <= kMostLines)
      lines.emplace(*curves, coef.data(), n_seeing, n_outputs);
    if (lines && !lines->finite) lines.reset();
    few = lines ? n_seeing : affordable();
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

}  // namespace svmosaic

// Boosted trees on binned columns.
//
// Round by round, each output gets a tree whose leaves lower the loss by a Newton step,
//   value = -rate G / (H + l2),   G, H = sums of first and second derivatives of w loss(target, score) over a leaf's rows,
// and the split of a leaf that gains most,
//   gain = GL^2 / (HL + l2) + GR^2 / (HR + l2) - G^2 / (H + l2),
// is made first, until there are `max_leaves`. Targets may be soft: probabilities instead of labels.
//
// Histograms hold integers: derivatives are rounded to so many bits that their sums over all rows fit into 32, and both
// are added at once, as the halves of one number of 64. Sums are exact then, whatever the order, so that trees have the same
// bits on any number of threads; the values of leaves come from the derivatives themselves.
//
// Columns of two values of which no row has two, such as those of the categories of one column, share one column of bins:
// bin b is the b-th of them, and 0 stands for none. Their splits tell one bin from all others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "random.hpp"

namespace svmosaic {

enum class BoostingLoss { kSquared, kLogistic, kSoftmax };

struct BoostingOptions {
  BoostingLoss loss;
  double rate, l2;
  int64_t max_leaves, min_rows;
  double min_curvature;            // of the rows of a leaf, added up
  double column_share, row_share;  // of each tree
};

// Trees as `RuleGate` takes them: siblings side by side, after their parent; a leaf has the feature -1 and names its tile.
struct BoostedTrees {
  std::vector<int32_t> feature, bin, left, roots, output;
  std::vector<double> value;  // of the tiles
};

class Booster {
 public:
  static constexpr int64_t kBins = 256;
  static constexpr int64_t kFewColumns = 10;  // a tree of fewer columns could not combine them

  // bins: n_rows x n_columns, row by row; rows from n_fitted on are held out. n_bins: of each column, negative if it is
  // shared. target: n_rows x n_outputs.
  Booster(const uint8_t* bins, int64_t n_rows, int64_t n_columns, const int32_t* n_bins, int64_t n_fitted, const double* target,
          const double* weight, int64_t n_outputs, const BoostingOptions& options, const uint64_t* seed)
      : bins_(bins), n_rows_(n_rows), n_columns_(n_columns), n_fitted_(n_fitted), n_outputs_(n_outputs),
        target_(target), weight_(weight), options_(options), start_(n_outputs),
        score_(n_rows * n_outputs), slope_(n_fitted), curvature_(n_fitted), packed_(n_fitted), order_(n_fitted),
        buffer_(n_fitted) {
    std::copy(seed, seed + 4, words_);
    for (int64_t f = 0; f < n_columns; ++f) {
      n_bins_.push_back(std::abs(n_bins[f]));
      shared_.push_back(n_bins[f] < 0);
    }
    start();
  }

  Booster(const Booster&) = delete;  // its random numbers point to words of its own

  const std::vector<double>& start_scores() const { return start_; }
  const std::vector<double>& scores() const { return score_; }
  const BoostedTrees& trees() const { return trees_; }

  // Adds a round of trees; returns the mean loss of the rows that are held out, or of all others if none is.
  double round(int n_threads) {
    Team team(n_threads);
    sample();
    if (options_.loss == BoostingLoss::kSoftmax) normalize(team);
    for (int64_t c = 0; c < n_outputs_; ++c) {
      derivatives(team, c);
      grow(team, c, n_threads);
    }
    return loss(team);
  }

 private:
  struct Split {
    double gain = 0.0;
    int32_t feature = -1, bin = 0;
  };
  struct Leaf {
    int64_t node, begin, end;
    double slope, curvature;
    std::vector<int64_t> histogram;
    Split best;
  };

  void start() {
    double total = 0.0;
    for (int64_t i = 0; i < n_fitted_; ++i) total += weight_[i];
    for (int64_t c = 0; c < n_outputs_; ++c) {
      double mean = 0.0;
      for (int64_t i = 0; i < n_fitted_; ++i) mean += weight_[i] * target_[i * n_outputs_ + c];
      mean /= total;
      if (options_.loss != BoostingLoss::kSquared) {
        const double share = std::min(std::max(mean, 1e-6), 1.0 - 1e-6);
        mean = options_.loss == BoostingLoss::kLogistic ? std::log(share / (1.0 - share)) : std::log(share);
      }
      start_[c] = mean;
    }
    for (int64_t i = 0; i < n_rows_; ++i) std::copy(start_.begin(), start_.end(), score_.begin() + i * n_outputs_);
    std::iota(order_.begin(), order_.end(), int64_t{0});
    columns_.resize(n_columns_);
    std::iota(columns_.begin(), columns_.end(), int32_t{0});
  }

  // The rows and the columns of the next trees.
  void sample() {
    in_sample_.resize(n_fitted_);
    std::iota(in_sample_.begin(), in_sample_.end(), int64_t{0});
    if (options_.row_share < 1.0) {
      const auto wanted = std::max<int64_t>(1, static_cast<int64_t>(options_.row_share * n_fitted_));
      for (int64_t i = 0, kept = 0; i < n_fitted_ && kept < wanted; ++i)  // selection sampling: the rows stay in order
        if (random_.below(n_fitted_ - i) < wanted - kept) in_sample_[kept++] = i;
      in_sample_.resize(wanted);
    }
  }

  // The probabilities of all outputs: all trees of a round see the same.
  void normalize(Team& team) {
    probability_.resize(n_fitted_ * n_outputs_);
    const int64_t n_pieces = pieces(n_fitted_);
    team.run(n_pieces, [&](int64_t t) {
      const Piece piece(n_fitted_, n_pieces, t);
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        const double* s = &score_[i * n_outputs_];
        double* p = &probability_[i * n_outputs_];
        const double highest = *std::max_element(s, s + n_outputs_);
        double sum = 0.0;
        for (int64_t c = 0; c < n_outputs_; ++c) sum += p[c] = std::exp(s[c] - highest);
        for (int64_t c = 0; c < n_outputs_; ++c) p[c] /= sum;
      }
    });
  }

  void derivatives(Team& team, int64_t c) {
    const int64_t n_pieces = pieces(n_fitted_);
    std::vector<double> largest(2 * n_pieces, 0.0);
    team.run(n_pieces, [&](int64_t t) {
      const Piece piece(n_fitted_, n_pieces, t);
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        const double score = score_[i * n_outputs_ + c], wanted = target_[i * n_outputs_ + c];
        if (options_.loss == BoostingLoss::kSquared) {
          slope_[i] = weight_[i] * (score - wanted);
          curvature_[i] = weight_[i];
        } else {
          double p = 0.0, factor = 1.0;
          if (options_.loss == BoostingLoss::kLogistic) {
            p = 1.0 / (1.0 + std::exp(-score));
          } else {
            p = probability_[i * n_outputs_ + c];
            factor = static_cast<double>(n_outputs_) / (n_outputs_ - 1);  // the scores of a row have a constant to spare
          }
          slope_[i] = weight_[i] * (p - wanted);
          curvature_[i] = std::max(factor * weight_[i] * p * (1.0 - p), 1e-16 * weight_[i]);
        }
        largest[2 * t] = std::max(largest[2 * t], std::abs(slope_[i]));
        largest[2 * t + 1] = std::max(largest[2 * t + 1], curvature_[i]);
      }
    });
    double most_slope = 1e-300, most_curvature = 1e-300;
    for (int64_t t = 0; t < n_pieces; ++t) {
      most_slope = std::max(most_slope, largest[2 * t]);
      most_curvature = std::max(most_curvature, largest[2 * t + 1]);
    }
    const double steps = std::floor(2147483647.0 / (n_fitted_ + 1));
    slope_unit_ = most_slope / std::min(steps, 32767.0);
    curvature_unit_ = most_curvature / std::min(steps, 32767.0);
    team.run(n_pieces, [&](int64_t t) {
      const Piece piece(n_fitted_, n_pieces, t);
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        const auto g = static_cast<int64_t>(std::nearbyint(slope_[i] / slope_unit_));
        const auto h = static_cast<int64_t>(std::nearbyint(curvature_[i] / curvature_unit_));
        packed_[i] = g * (int64_t{1} << 32) + h;
      }
    });
  }

  double slope_of(int64_t packed) const { return slope_unit_ * static_cast<double>(packed >> 32); }
  double curvature_of(int64_t packed) const { return curvature_unit_ * static_cast<double>(packed & 0xffffffff); }

  void grow(Team& team, int64_t output, int n_threads) {
    used_ = columns_;
    if (options_.column_share < 1.0) {
      const auto wanted = std::max<int64_t>(std::min(n_columns_, kFewColumns), std::llround(options_.column_share * n_columns_));
      for (int64_t k = 0; k < wanted; ++k) std::swap(used_[k], used_[k + random_.below(n_columns_ - k)]);
      used_.resize(wanted);
      std::sort(used_.begin(), used_.end());
    }
    first_.assign(1, 0);
    for (const int32_t f : used_) first_.push_back(first_.back() + n_bins_[f]);
    order_.assign(in_sample_.begin(), in_sample_.end());
    const auto root = static_cast<int32_t>(trees_.feature.size());
    trees_.roots.push_back(root);
    trees_.output.push_back(static_cast<int32_t>(output));
    add_node();
    std::vector<Leaf> leaves;
    leaves.push_back({root, 0, static_cast<int64_t>(order_.size()), 0.0, 0.0, {}, {}});
    fill(team, leaves[0], n_threads);
    find(team, leaves[0]);
    while (static_cast<int64_t>(leaves.size()) < options_.max_leaves) {
      auto best = std::max_element(leaves.begin(), leaves.end(),
                                   [](const Leaf& a, const Leaf& b) { return a.best.gain < b.best.gain; });
      if (!(best->best.gain > 0.0)) break;
      Leaf parent = std::move(*best);
      const int32_t child = static_cast<int32_t>(trees_.feature.size());
      trees_.feature[parent.node] = parent.best.feature;
      trees_.bin[parent.node] = parent.best.bin;
      trees_.left[parent.node] = child;
      add_node();
      add_node();
      const int64_t middle = partition(parent);
      Leaf left{child, parent.begin, middle, 0.0, 0.0, {}, {}}, right{child + 1, middle, parent.end, 0.0, 0.0, {}, {}};
      if (static_cast<int64_t>(leaves.size()) + 1 < options_.max_leaves) {
        // The histogram of the smaller one is counted; that of the other is the rest.
        Leaf &smaller = middle - parent.begin <= parent.end - middle ? left : right, &larger = &smaller == &left ? right : left;
        fill(team, smaller, n_threads);
        larger.histogram = std::move(parent.histogram);
        for (size_t k = 0; k < larger.histogram.size(); ++k) larger.histogram[k] -= smaller.histogram[k];
        find(team, left);
        find(team, right);
        for (Leaf* leaf : {&left, &right})
          if (leaf->best.gain <= 0.0) leaf->histogram = {};
      }
      *best = std::move(left);
      leaves.push_back(std::move(right));
    }
    finish(team, leaves, root, output);
  }

  bool goes_right(int32_t bin, int32_t column, int32_t split) const {
    return shared_[column] ? bin == split : bin > split;
  }

  void add_node() {
    trees_.feature.push_back(-1);
    trees_.bin.push_back(0);
    trees_.left.push_back(0);
  }

  // The values of the leaves, and what they add to the scores.
  void finish(Team& team, std::vector<Leaf>& leaves, int32_t root, int64_t output) {
    std::vector<double> value(leaves.size());
    team.run(static_cast<int64_t>(leaves.size()), [&](int64_t k) {
      double slope = 0.0, curvature = 0.0;
      for (int64_t p = leaves[k].begin; p < leaves[k].end; ++p) {
        slope += slope_[order_[p]];
        curvature += curvature_[order_[p]];
      }
      value[k] = -options_.rate * slope / (curvature + options_.l2);
      if (options_.row_share >= 1.0)
        for (int64_t p = leaves[k].begin; p < leaves[k].end; ++p) score_[order_[p] * n_outputs_ + output] += value[k];
    });
    // Tiles are numbered from left to right, as one reads a drawn tree.
    std::vector<double> of_node(trees_.feature.size() - root);
    for (size_t k = 0; k < leaves.size(); ++k) of_node[leaves[k].node - root] = value[k];
    for (std::vector<int32_t> stack{root}; !stack.empty();) {
      const int32_t node = stack.back();
      stack.pop_back();
      if (trees_.feature[node] >= 0) {
        stack.push_back(trees_.left[node] + 1);
        stack.push_back(trees_.left[node]);
      } else {
        trees_.left[node] = static_cast<int32_t>(trees_.value.size());
        trees_.value.push_back(of_node[node - root]);
      }
    }
    const int64_t begin = options_.row_share >= 1.0 ? n_fitted_ : 0, n = n_rows_ - begin, n_pieces = pieces(n);
    team.run(n_pieces, [&](int64_t t) {
      const Piece piece(n, n_pieces, t);
      for (int64_t i = begin + piece.begin; i < begin + piece.end; ++i) {
        int32_t node = root;
        while (trees_.feature[node] >= 0)
          node = trees_.left[node] + (goes_right(bins_[i * n_columns_ + trees_.feature[node]], trees_.feature[node], trees_.bin[node]));
        score_[i * n_outputs_ + output] += trees_.value[trees_.left[node]];
      }
    });
  }

  static int64_t pieces(int64_t n) { return std::max<int64_t>(1, std::min<int64_t>(n / 4096, 64)); }

  // Adds the rows to a histogram: the bins of the columns in use, one after the other.
  void count(const int64_t* rows, int64_t n, int64_t* histogram) const {
    const auto n_used = static_cast<int64_t>(used_.size());
    constexpr int64_t kAhead = 16;
    for (int64_t p = 0; p < n; ++p) {
      if (p + kAhead < n) __builtin_prefetch(bins_ + rows[p + kAhead] * n_columns_);
      const uint8_t* row = bins_ + rows[p] * n_columns_;
      const int64_t packed = packed_[rows[p]];
      for (int64_t k = 0; k < n_used; ++k) histogram[first_[k] + row[used_[k]]] += packed;
    }
  }

  void fill(Team& team, Leaf& leaf, int n_threads) {
    const int64_t n = leaf.end - leaf.begin, size = first_.back();
    leaf.histogram.assign(size, 0);
    const int64_t n_parts = std::min<int64_t>(n_threads, n * static_cast<int64_t>(used_.size()) / (4 * size + 1));
    if (n_parts < 2) return count(&order_[leaf.begin], n, leaf.histogram.data());
    parts_.resize(n_parts);
    team.run(n_parts, [&](int64_t t) {
      const Piece piece(n, n_parts, t);
      if (t) parts_[t].assign(size, 0);
      count(&order_[leaf.begin + piece.begin], piece.end - piece.begin, t ? parts_[t].data() : leaf.histogram.data());
    });
    team.run(n_parts, [&](int64_t t) {
      const Piece piece(size, n_parts, t);
      for (int64_t other = 1; other < n_parts; ++other)
        for (int64_t k = piece.begin; k < piece.end; ++k) leaf.histogram[k] += parts_[other][k];
    });
  }

  // The best split of a leaf; of equal ones the first.
  void find(Team& team, Leaf& leaf) {
    const auto n_used = static_cast<int64_t>(used_.size());
    double n = 0.0;  // a row counts as often as its weight says
    for (int64_t p = leaf.begin; p < leaf.end; ++p) n += weight_[order_[p]];
    if (n < 2.0 * options_.min_rows) return;
    int64_t total = 0;
    for (int64_t b = 0; b < first_[1]; ++b) total += leaf.histogram[b];
    const double slope = slope_of(total), curvature = curvature_of(total);
    if (!(curvature > 0.0)) return;
    // Rows are counted by their curvature, which the histogram holds.
    const double rows_of = n / curvature, alone = slope * slope / (curvature + options_.l2);
    const double least = std::max(options_.min_curvature, options_.min_rows / rows_of) * (1.0 - 1e-9);
    const int64_t n_pieces = std::max<int64_t>(1, first_.back() / 1024);
    std::vector<Split> best(n_pieces);
    auto search = [&](int64_t t) {
      const Piece piece(n_used, n_pieces, t);
      for (int64_t k = piece.begin; k < piece.end; ++k) {
        const int64_t* histogram = &leaf.histogram[first_[k]];
        const int32_t n_bins = n_bins_[used_[k]];
        const bool shared = shared_[used_[k]];
        int64_t sum = 0;
        for (int32_t b = shared ? 1 : 0; b < n_bins - !shared; ++b) {
          if (!histogram[b]) continue;
          sum = shared ? total - histogram[b] : sum + histogram[b];
          const double g = slope_of(sum), h = curvature_of(sum), other = curvature - h;
          if (h < least || other < least) continue;
          const double gain = g * g / (h + options_.l2) + (slope - g) * (slope - g) / (other + options_.l2) - alone;
          if (gain > best[t].gain) best[t] = {gain, used_[k], b};
        }
      }
    };
    if (n_pieces > 1)
      team.run(n_pieces, search);
    else
      search(0);
    for (const Split& split : best)
      if (split.gain > leaf.best.gain && split.gain > 1e-9 * std::abs(alone)) leaf.best = split;
  }

  // Puts the rows of the left child first; returns where those of the right one begin.
  int64_t partition(const Leaf& leaf) {
    int64_t n_left = leaf.begin, n_right = 0;
    const uint8_t* column = bins_ + leaf.best.feature;
    const bool shared = shared_[leaf.best.feature];
    const auto split = static_cast<uint8_t>(leaf.best.bin);
    for (int64_t p = leaf.begin; p < leaf.end; ++p) {
      const int64_t row = order_[p];
      const uint8_t bin = column[row * n_columns_];
      const bool right = shared ? bin == split : bin > split;
      order_[n_left] = row;
      buffer_[n_right] = row;
      n_left += !right;
      n_right += right;
    }
    std::copy(buffer_.begin(), buffer_.begin() + n_right, order_.begin() + n_left);
    return n_left;
  }

  double loss(Team& team) {
    const int64_t begin = n_fitted_ < n_rows_ ? n_fitted_ : 0, n = n_rows_ - begin, n_pieces = pieces(n);
    std::vector<double> sums(2 * n_pieces, 0.0);
    team.run(n_pieces, [&](int64_t t) {
      const Piece piece(n, n_pieces, t);
      for (int64_t i = begin + piece.begin; i < begin + piece.end; ++i) {
        const double *s = &score_[i * n_outputs_], *wanted = &target_[i * n_outputs_];
        double row = 0.0;
        if (options_.loss == BoostingLoss::kSoftmax) {
          double highest = s[0], sum = 0.0;
          for (int64_t c = 1; c < n_outputs_; ++c) highest = std::max(highest, s[c]);
          for (int64_t c = 0; c < n_outputs_; ++c) sum += std::exp(s[c] - highest);
          for (int64_t c = 0; c < n_outputs_; ++c) row -= wanted[c] * (s[c] - highest - std::log(sum));
        } else {
          for (int64_t c = 0; c < n_outputs_; ++c)
            row += options_.loss == BoostingLoss::kSquared
                       ? (s[c] - wanted[c]) * (s[c] - wanted[c])
                       : std::max(s[c], 0.0) - s[c] * wanted[c] + std::log1p(std::exp(-std::abs(s[c])));
        }
        sums[2 * t] += weight_[i] * row;
        sums[2 * t + 1] += weight_[i];
      }
    });
    double total = 0.0, weight = 0.0;
    for (int64_t t = 0; t < n_pieces; ++t) {
      total += sums[2 * t];
      weight += sums[2 * t + 1];
    }
    return total / std::max(weight, 1e-300);
  }

  const uint8_t* bins_;
  int64_t n_rows_, n_columns_, n_fitted_, n_outputs_;
  const double *target_, *weight_;
  BoostingOptions options_;
  uint64_t words_[4];
  Random random_{words_};
  std::vector<double> start_, score_, probability_, slope_, curvature_;
  double slope_unit_ = 1.0, curvature_unit_ = 1.0;
  std::vector<int64_t> packed_, order_, buffer_, in_sample_;
  std::vector<int32_t> n_bins_, columns_, used_;  // used_: by this tree; first_: where their bins begin in a histogram
  std::vector<uint8_t> shared_;
  std::vector<int64_t> first_;
  std::vector<std::vector<int64_t>> parts_;
  BoostedTrees trees_;
};

}  // namespace svmosaic

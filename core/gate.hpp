// What the scoring engine asks of a gate: to which tiles a row belongs, and how much.
//
// One kind of gate is one file: a struct that derives from `GateOf`, its buffers, and a function `code_block`, compiled
// for every instruction set. A virtual call is made for each block of rows, not for each row.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

// The most rows that are coded at a time.
constexpr int64_t kGateBlock = 16 * kRowsAtOnce;

// What tiles that are only a number add to the scores, times the factor of their gate.
struct Numbers {
  const double* number;  // [tile][output]
  int64_t n_outputs;
  double factor;
};

template <class T>
struct Gate {
  // Buffers of one thread, for a number of rows that is known when they are made.
  struct Scratch {
    virtual ~Scratch() = default;
  };

  int64_t n_tiles, n_features;
  int64_t width;   // (tile, weight) pairs per row
  bool posterior;  // the pairs are all tiles in their order, and many weights may be zero

  Gate(int64_t n_tiles, int64_t n_features, int64_t width, bool posterior = false)
      : n_tiles(n_tiles), n_features(n_features), width(width), posterior(posterior) {}
  virtual ~Gate() = default;

  // Multiply-adds a row, about.
  virtual int64_t cost() const = 0;
  virtual std::unique_ptr<Scratch> scratch(int64_t n_rows) const = 0;
  // `width` tiles and weights for each of the n rows from `begin` on, n at most what the scratch was made for. The bits
  // of a row do not depend on the rows beside it.
  virtual void code(const DenseRows<T>& x, int64_t begin, int64_t n, Scratch& scratch, int32_t* tile,
                    double* weight) const = 0;
  virtual void code(const SparseRows<T>& x, int64_t begin, int64_t n, Scratch& scratch, int32_t* tile,
                    double* weight) const = 0;

  // Whether `add` is there: out[r][c] += factor * weight * number[tile][c] over the pairs of each of n rows, in their
  // order. It saves writing down pairs whose tiles are only numbers.
  virtual bool adds() const { return false; }
  virtual void add(const DenseRows<T>&, int64_t, int64_t, Scratch&, const Numbers&, double*) const {}
  virtual void add(const SparseRows<T>&, int64_t, int64_t, Scratch&, const Numbers&, double*) const {}
};

// Turns the calls above into those of `code_block(gate, x, begin, n, buffers, tile, weight)` for one kind of gate.
template <class T, template <class> class Kind, template <class> class Buffers>
struct GateOf : Gate<T> {
  using typename Gate<T>::Scratch;
  using Gate<T>::Gate;

  std::unique_ptr<Scratch> scratch(int64_t n_rows) const override {
    return std::make_unique<Buffers<T>>(static_cast<const Kind<T>&>(*this), n_rows);
  }
  void code(const DenseRows<T>& x, int64_t begin, int64_t n, Scratch& scratch, int32_t* tile,
            double* weight) const override {
    code_block(static_cast<const Kind<T>&>(*this), x, begin, n, static_cast<Buffers<T>&>(scratch), tile, weight);
  }
  void code(const SparseRows<T>& x, int64_t begin, int64_t n, Scratch& scratch, int32_t* tile,
            double* weight) const override {
    code_block(static_cast<const Kind<T>&>(*this), x, begin, n, static_cast<Buffers<T>&>(scratch), tile, weight);
  }
};

// ---- for gates that give every tile a weight ----------------------------------------------------------

// Rows in double precision, less an origin near the gate's centers, so that data far from zero lose no digits.
struct MovedRows {
  std::vector<double> data;
  std::vector<const double*> row;

  MovedRows(int64_t n_rows, int64_t n_features) : data(n_rows * n_features), row(n_rows) {
    for (int64_t r = 0; r < n_rows; ++r) row[r] = data.data() + r * n_features;
  }

  template <class T>
  SVMOSAIC_CLONES void fill(const DenseRows<T>& x, int64_t begin, int64_t n, const double* origin) {
    for (int64_t r = 0; r < n; ++r) {
      const T* from = x.data + (begin + r) * x.stride;
      double* to = data.data() + r * x.n_features;
      for (int64_t f = 0; f < x.n_features; ++f) to[f] = static_cast<double>(from[f]) - origin[f];
    }
  }

  template <class T>
  SVMOSAIC_CLONES void fill(const SparseRows<T>& x, int64_t begin, int64_t n, const double* origin) {
    for (int64_t r = 0; r < n; ++r) {
      double* to = data.data() + r * x.n_features;
      for (int64_t f = 0; f < x.n_features; ++f) to[f] = -origin[f];
      for (int64_t p = x.indptr[begin + r]; p < x.indptr[begin + r + 1]; ++p) to[x.indices[p]] += x.data[p];
    }
  }
};

// All tiles in their order. Weights below the rows' own rounding, as a share of the sum, become zero: their tiles need
// not be computed, and a vote, which is at most one, moves by less than n_tiles times that rounding.
template <class T>
inline void settle_posterior(int64_t n_tiles, int32_t* tile, double* weight) {
  double sum = 0;
  for (int64_t j = 0; j < n_tiles; ++j) sum += weight[j];
  const double least = std::numeric_limits<T>::epsilon() * sum;
  for (int64_t j = 0; j < n_tiles; ++j) {
    tile[j] = static_cast<int32_t>(j);
    if (weight[j] < least) weight[j] = 0;
  }
}

}  // namespace svmosaic

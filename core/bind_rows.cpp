// Rows, designs, and what is found of rows alone.
#include <nanobind/stl/string.h>

#include <atomic>
#include <type_traits>

#include "bind.hpp"
#include "mersenne.hpp"
#include "passes.hpp"
#include "seeding.hpp"

namespace svmosaic {
namespace {

template <class T>
RowsHandle dense_rows(Matrix<const T> x, double bias) {
  const int64_t n = x.shape(0), d = x.shape(1);
  return {DenseRows<T>{x.data(), n, d, d, bias}, nb::cast(x)};
}

template <class T>
RowsHandle sparse_rows(Vector<const T> data, Vector<const int32_t> indices, Vector<const int64_t> indptr,
                       int64_t n_features, double bias) {
  const int64_t n = check_csr(data, indices, indptr, n_features);
  return {SparseRows<T>{data.data(), indices.data(), indptr.data(), n, n_features, bias},
          nb::make_tuple(data, indices, indptr)};
}

Sight sight_of(const std::string& name) {
  if (name == "all") return Sight::all;
  if (name == "straight") return Sight::straight;
  if (name == "bias") return Sight::bias;
  throw std::invalid_argument("unknown sight: " + name);
}

// Looked for in the exponents: all of their bits are set in what is not finite.
template <class T>
bool all_finite(const Vector<const T>& values, int n_threads) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits exponent = sizeof(T) == 4 ? static_cast<Bits>(0x7f800000u) : static_cast<Bits>(0x7ff0000000000000u);
  const int64_t n = values.shape(0), n_pieces = pieces_of(n, 1);
  const T* data = values.data();
  std::atomic<bool> finite{true};
  nb::gil_scoped_release release;
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n, n_pieces, t);
    Bits found = 0;
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      Bits bits;
      std::memcpy(&bits, data + i, sizeof(bits));
      found |= (bits & exponent) == exponent;
    }
    if (found) finite = false;
  });
  return finite;
}

DesignHandle make_design(const RowsHandle& rows, Matrix<const int32_t> block, std::optional<Matrix<const double>> coef,
                         std::optional<Vector<const int32_t>> index, int64_t n_blocks,
                         int64_t n_full, const std::string& rest) {
  const int64_t n = block.shape(0), width = block.shape(1);
  require(n < (int64_t{1} << 31), "at most 2^31 - 1 rows");
  require(n_blocks >= 1, "n_blocks must be at least 1");
  for (int64_t i = 0; i < n * width; ++i)
    require(block.data()[i] >= 0 && block.data()[i] < n_blocks, "a block is out of range");
  if (coef)
    require(static_cast<int64_t>(coef->shape(0)) == n && static_cast<int64_t>(coef->shape(1)) == width,
            "coef and block must have the same shape");
  if (index) {
    require(static_cast<int64_t>(index->shape(0)) == n, "index must have one entry per row of block");
    for (int64_t i = 0; i < n; ++i)
      require(index->data()[i] >= 0 && index->data()[i] < rows.n_rows(), "a row index is out of range");
  } else {
    require(n == rows.n_rows(), "block must have one line a data row when there is no index");
  }
  return {Design{index ? index->data() : nullptr, block.data(), coef ? coef->data() : nullptr, n, width, n_blocks,
                 n_full, sight_of(rest)},
          rows.n_rows(), nb::make_tuple(block, coef, index)};
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowsHandle>(m, "Rows", "Training rows (x_i, bias), dense or compressed sparse.")
      .def_static("dense", &dense_rows<float>, nb::arg("x").noconvert(), nb::arg("bias"))
      .def_static("dense", &dense_rows<double>, nb::arg("x").noconvert(), nb::arg("bias"))
      .def_static("sparse", &sparse_rows<float>, nb::arg("data").noconvert(), nb::arg("indices"), nb::arg("indptr"),
                  nb::arg("n_features"), nb::arg("bias"))
      .def_static("sparse", &sparse_rows<double>, nb::arg("data").noconvert(), nb::arg("indices"), nb::arg("indptr"),
                  nb::arg("n_features"), nb::arg("bias"))
      .def_prop_ro("n_rows", &RowsHandle::n_rows)
      .def_prop_ro("n_features", &RowsHandle::n_features)
      .def_prop_ro("n_stored", [](const RowsHandle& rows) { return rows.visit([](const auto& x) { return x.n_stored(); }); });

  nb::class_<DesignHandle>(m, "Design", "Which blocks each problem row touches, and with what coefficient.")
      .def("__init__",
           [](DesignHandle* self, const RowsHandle& rows, Matrix<const int32_t> block,
              std::optional<Matrix<const double>> coef, std::optional<Vector<const int32_t>> index, int64_t n_blocks,
              int64_t n_full, const std::string& rest) {
             new (self) DesignHandle(make_design(rows, block, coef, index, n_blocks, n_full, rest));
           },
           nb::arg("rows"), nb::arg("block"), nb::arg("coef").none(), nb::arg("index").none(), nb::arg("n_blocks"),
           nb::arg("n_full") = 0, nb::arg("rest") = "all")
      .def_prop_ro("n_rows", [](const DesignHandle& d) { return d.design.n_rows; })
      .def_prop_ro("n_blocks", [](const DesignHandle& d) { return d.design.n_blocks; })
      .def_prop_ro("width", [](const DesignHandle& d) { return d.design.width; });

  m.def(
      "seed_centers",
      [](const RowsHandle& rows, Vector<const double> weight, Matrix<const double> uniform, Vector<int32_t> chosen,
         int n_threads) {
        const int64_t n_centers = chosen.shape(0), n_trials = uniform.shape(1);
        require_length(weight.shape(0), rows.n_rows(), "weight must have one entry per row");
        require(n_centers >= 1 && n_trials >= 1, "a center and a trial are needed at least");
        require_length(uniform.shape(0), n_centers - 1, "uniform must have one line per center but the first");
        require(chosen.data()[0] >= 0 && chosen.data()[0] < rows.n_rows(), "chosen[0] names a row that is not there");
        nb::gil_scoped_release release;
        rows.visit_plain([&](const auto& x) {
          seed_centers(x, weight.data(), uniform.data(), n_trials, n_centers, chosen.data(), n_threads);
        });
      },
      nb::arg("rows"), nb::arg("weight"), nb::arg("uniform"), nb::arg("chosen").noconvert(), nb::arg("n_threads") = 1,
      "k-means++: fills chosen[1:] with rows, each the best of some drawn by weight times squared distance.");

  m.def("all_finite", &all_finite<float>, nb::arg("values").noconvert(), nb::arg("n_threads") = 1,
        "Whether no value is infinite or NaN.");
  m.def("all_finite", &all_finite<double>, nb::arg("values").noconvert(), nb::arg("n_threads") = 1);

  m.def(
      "shuffle",
      [](Vector<uint32_t> key, int64_t place, Vector<int32_t> items) {
        require_length(key.shape(0), MersenneTwister::kWords, "the state must have 624 words");
        require(place >= 0 && place <= MersenneTwister::kWords, "the place in the state is out of range");
        nb::gil_scoped_release release;
        MersenneTwister random{key.data(), place};
        random.shuffle(items.data(), items.shape(0));
        return random.place;
      },
      nb::arg("key").noconvert(), nb::arg("place"), nb::arg("items").noconvert(),
      "Shuffle as numpy.random.RandomState does, from the words of its state, which are changed; returns the new place.");

  m.def(
      "squared_norms",
      [](const RowsHandle& rows, Vector<double> out, int n_threads, bool straight) {
        require_length(out.shape(0), rows.n_rows(), "out must have one entry per row");
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) { squared_norms(x, out.data(), n_threads, straight); });
      },
      nb::arg("rows"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1, nb::arg("straight") = false,
      "out[i] = |(x_i, bias)|^2, or that of its straight terms and the bias.");
}

}  // namespace svmosaic

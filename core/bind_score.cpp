// Scoring.
#include <nanobind/stl/string.h>

#include <atomic>
#include <memory>

#include "bind.hpp"
#include "score.hpp"

namespace svmosaic {
namespace {

using Cube = Array<const double, nb::ndim<3>>;

Link link_of(const std::string& name) {
  if (name == "identity") return Link::identity;
  if (name == "vote") return Link::vote;
  if (name == "posterior") return Link::posterior;
  throw std::invalid_argument("unknown link: " + name);
}

void require_increasing(const Vector<const int32_t>& tiles, int64_t n_given, int64_t n_tiles) {
  require_length(tiles.shape(0), n_given, "sloped must have one entry per tile with weights");
  for (int64_t q = 0; q < n_given; ++q)
    require(tiles.data()[q] > (q ? tiles.data()[q - 1] : -1) && tiles.data()[q] < n_tiles,
            "sloped must hold increasing tiles");
}

// The index of each tile among those with weights, or a negative number.
template <class T>
std::vector<int32_t> seeing(const Tiles<T>& tiles) {
  std::vector<int32_t> place = tiles.place;
  if (tiles.flat)
    for (int64_t k = 0; k < tiles.n_tiles; ++k) place[k] = std::max(place[k], tiles.flat->tiles.place[k]);
  return place;
}

// A gate (or none: one tile) and the tiles, packed for scoring. The gate is kept alive by Python.
template <class T>
struct Scorer {
  const Gate<T>* gate;
  Tiles<T> tiles;
  SplitGate<T> split;
  // One spare set of buffers, taken and put back whole: a thread that finds none makes its own.
  std::atomic<RowScratch<T>*> spare{nullptr};

  Scorer(const Gate<T>* gate, Tiles<T>&& tiles) : gate(gate), tiles(std::move(tiles)), split(gate, seeing(this->tiles)) {}
  ~Scorer() { delete spare.load(); }

  // Score one row, and hand the scores to `use`.
  template <class Use>
  auto on_row(const nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>& row, const Use& use) {
    if (static_cast<int64_t>(row.shape(0)) != tiles.n_inputs())
      throw std::invalid_argument("the row has " + std::to_string(row.shape(0)) + " features, the model " +
                                  std::to_string(tiles.n_inputs()));
    require(gate || tiles.n_tiles == 1, "a model of several tiles needs a gate");
    std::unique_ptr<RowScratch<T>> scratch(spare.exchange(nullptr));
    if (!scratch) scratch = std::make_unique<RowScratch<T>>(split, tiles);
    const T* x = row.data();
    if (const int64_t stride = row.stride(0); stride != 1) {
      for (int64_t f = 0; f < tiles.n_inputs(); ++f) scratch->x[f] = x[f * stride];
      x = scratch->x.data();
    }
    score_row(split, tiles, x, *scratch);
    auto result = use(scratch->out);
    delete spare.exchange(scratch.release());
    return result;
  }
};

template <class T>
void bind_precision(nb::module_& m, const char* name) {
  nb::class_<Scorer<T>>(m, name, "A gate and a bank of linear tiles, packed for scoring.")
      .def("__init__",
           [](Scorer<T>* self, const Gate<T>* gate, Cube coef, Matrix<const double> intercept,
              const std::string& link, int64_t width, const Pieces<T>* curves, bool zero_is_zero,
              std::optional<Vector<const int32_t>> sloped, std::optional<Cube> flat_coef,
              std::optional<Vector<const int32_t>> flat, std::optional<Matrix<const double>> terms) {
             const int64_t n_tiles = intercept.shape(0), n_outputs = intercept.shape(1), d = coef.shape(2);
             require(n_tiles >= 1 && n_outputs >= 1, "at least one tile and one output are needed");
             require(static_cast<int64_t>(coef.shape(1)) == n_outputs, "coef must have as many outputs as intercept");
             if (sloped)
               require_increasing(*sloped, coef.shape(0), n_tiles);
             else
               require(static_cast<int64_t>(coef.shape(0)) == n_tiles, "coef must have the weights of every tile");
             std::optional<Curves<T>> packed;
             if (curves) packed.emplace(Pieces<T>(*curves), zero_is_zero);
             require(!packed || packed->n_features() == d, "curves and tiles do not belong together");
             require(!gate || (gate->n_tiles == n_tiles && gate->n_features == (curves ? curves->n_inputs : d)),
                     "gate and tiles do not belong together");
             const bool posterior = gate && gate->posterior;
             width = gate ? gate->width : width;
             Tiles<T> tiles(coef.data(), sloped ? sloped->data() : nullptr, coef.shape(0), intercept.data(), n_tiles,
                            n_outputs, d, link_of(link), width, posterior, std::move(packed));
             if (flat_coef) {
               const int64_t n_inputs = tiles.n_inputs(), n_flat = flat_coef->shape(0);
               require(flat && terms && tiles.link == Link::identity, "straight tiles need their terms, and no link");
               require_increasing(*flat, n_flat, n_tiles);
               require(static_cast<int64_t>(flat_coef->shape(1)) == n_outputs &&
                           static_cast<int64_t>(flat_coef->shape(2)) == n_inputs && terms->shape(0) == 3 &&
                           static_cast<int64_t>(terms->shape(1)) == n_inputs,
                       "straight tiles and curves do not belong together");
               for (int64_t q = 0; q < n_flat; ++q)
                 require(tiles.place[flat->data()[q]] < 0, "a tile has weights of its curves already");
               tiles.flat = std::make_shared<FlatTiles<T>>(
                   flat_coef->data(), flat->data(), n_flat, terms->data(), terms->data() + n_inputs,
                   terms->data() + 2 * n_inputs, n_inputs, n_tiles, n_outputs, width, posterior);
             }
             new (self) Scorer<T>(gate, std::move(tiles));
           },
           nb::arg("gate").none(), nb::arg("coef"), nb::arg("intercept"), nb::arg("link"), nb::arg("width") = 1,
           nb::arg("curves") = nb::none(), nb::arg("zero_is_zero") = false, nb::arg("sloped") = nb::none(),
           nb::arg("flat_coef") = nb::none(), nb::arg("flat") = nb::none(), nb::arg("terms") = nb::none(),
           nb::keep_alive<1, 2>(),
           "`width`: how many tiles a row selects if there is no gate to ask. With `curves`, coef holds what curves.hpp "
           "says, and `zero_is_zero` that all curves are zero at zero. With `sloped`, coef has the weights of these "
           "tiles alone, and the others are numbers. With `flat_coef`, these tiles (`flat`) are linear in the straight "
           "terms clip((x - center) * scale, -reach, reach), whose center, scale and reach are the lines of `terms`.")
      .def_prop_ro(
          "few", [](const Scorer<T>& self) { return self.tiles.few; },
          "A row that gives weight to at most so many tiles is scored on these alone, else on all.")
      .def(
          "score",
          [](const Scorer<T>& self, const RowsHandle& rows, Matrix<double> out, int n_threads) {
            const Tiles<T>& tiles = self.tiles;
            require(self.gate, "there is no gate: use score_codes");
            require(static_cast<int64_t>(out.shape(0)) == rows.n_rows() &&
                        static_cast<int64_t>(out.shape(1)) == tiles.n_outputs,
                    "out must have shape (n_rows, n_outputs)");
            const int64_t cost = self.gate->cost() + score_cost(tiles, self.gate->width);
            with_rows<T>(rows, tiles.n_inputs(), cost,
                         [&](const auto& x) { score_all(self.split, cost, tiles, x, out.data(), n_threads); });
          },
          nb::arg("rows"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "out[i, c] = sum_a weight[i, a] link(<w[tile[i, a], c], x_i> + b), with codes from the gate.")
      .def(
          "score_row",
          [](Scorer<T>& self, nb::ndarray<const T, nb::ndim<1>, nb::device::cpu> row, Vector<double> out) {
            require_length(out.shape(0), self.tiles.n_outputs, "out must have one entry per output");
            self.on_row(row, [&](const std::vector<double>& scores) {
              std::copy(scores.begin(), scores.end(), out.data());
              return 0;
            });
          },
          nb::arg("row").noconvert(), nb::arg("out"), "The scores of one dense row, from the buffers of the last.")
      .def(
          "first_score",
          [](Scorer<T>& self, nb::ndarray<const T, nb::ndim<1>, nb::device::cpu> row) {
            return self.on_row(row, [](const std::vector<double>& scores) { return scores[0]; });
          },
          nb::arg("row").noconvert(), "The first score of one dense row: all there is for two classes.")
      .def(
          "best_of_row",
          [](Scorer<T>& self, nb::ndarray<const T, nb::ndim<1>, nb::device::cpu> row) {
            return self.on_row(row, [](const std::vector<double>& scores) -> int64_t {
              if (scores.size() == 1) return scores[0] > 0;
              return std::max_element(scores.begin(), scores.end()) - scores.begin();
            });
          },
          nb::arg("row").noconvert(), "The place of the class that wins one dense row; of equals, the first.")
      .def(
          "score_codes",
          [](const Scorer<T>& self, const RowsHandle& rows, Matrix<const int32_t> tile,
             std::optional<Matrix<const double>> weight, Matrix<double> out, int n_threads) {
            const Tiles<T>& tiles = self.tiles;
            const int64_t n = rows.n_rows(), width = tile.shape(1);
            require_length(tile.shape(0), n, "tile must have one line per row");
            if (weight)
              require(static_cast<int64_t>(weight->shape(0)) == n && static_cast<int64_t>(weight->shape(1)) == width,
                      "tile and weight must have the same shape");
            for (int64_t i = 0; i < n * width; ++i)
              require(tile.data()[i] >= 0 && tile.data()[i] < tiles.n_tiles, "a tile is out of range");
            require(static_cast<int64_t>(out.shape(0)) == n && static_cast<int64_t>(out.shape(1)) == tiles.n_outputs,
                    "out must have shape (n_rows, n_outputs)");
            with_rows<T>(rows, tiles.n_inputs(), score_cost(tiles, width), [&](const auto& x) {
              score_all(tiles, x, tile.data(), weight ? weight->data() : nullptr, width, out.data(), n_threads);
            });
          },
          nb::arg("rows"), nb::arg("tile"), nb::arg("weight").none(), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
          "The same with codes given.");
}

}  // namespace

void bind_score(nb::module_& m) {
  bind_precision<float>(m, "ScorerF32");
  bind_precision<double>(m, "ScorerF64");
}

}  // namespace svmosaic

// The Python face of the core: arrays in, arrays changed in place, the GIL released.
#include "bind.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of svmosaic: rows, block designs, dual descent, second-order kernels, scoring.";
  svmosaic::bind_pool(m);
  svmosaic::bind_rows(m);
  svmosaic::bind_pieces(m);
  svmosaic::bind_descent(m);
  svmosaic::bind_newton(m);
  svmosaic::bind_mixture(m);
  svmosaic::bind_gates(m);
  svmosaic::bind_score(m);
  svmosaic::bind_sgd(m);
  svmosaic::bind_crammer_singer(m);
  svmosaic::bind_neighbors(m);
  svmosaic::bind_learner(m);
  svmosaic::bind_rules(m);
  svmosaic::bind_boosting(m);
}

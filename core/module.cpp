// The Python face of the core: arrays in, arrays changed in place, the GIL released.
#include "bind.hpp"
#include "parallel.hpp"

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);
  m.doc() = "The C++ core of svmosaic: rows, block designs, dual descent, second-order kernels, scoring.";
  nb::class_<svmosaic::Pool>(m, "Pool",
                   "Threads that help each other: within `with pool`, loops over rows are open to those that serve.")
      .def(nb::init<>())
      .def("__enter__",
           [](svmosaic::Pool& self) {
             self.enter();
             svmosaic::Pool::current() = &self;
           })
      .def("__exit__",
           [](svmosaic::Pool& self, nb::args) {
             svmosaic::Pool::current() = nullptr;
             self.leave();
           })
      .def(
          "serve",
          [](svmosaic::Pool& self) {
            nb::gil_scoped_release release;
            self.serve();
          },
          "Help with the loops of the threads within `with pool` until there is none.");
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

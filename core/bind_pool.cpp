// The pool of threads that the solves of one call share.
#include "bind.hpp"
#include "parallel.hpp"

namespace svmosaic {

void bind_pool(nb::module_& m) {
  nb::class_<Pool>(m, "Pool",
                   "Threads that help each other: within `with pool`, loops over rows are open to those that serve.")
      .def(nb::init<>())
      .def("__enter__",
           [](Pool& self) {
             self.enter();
             Pool::current() = &self;
           })
      .def("__exit__",
           [](Pool& self, nb::args) {
             Pool::current() = nullptr;
             self.leave();
           })
      .def(
          "serve",
          [](Pool& self) {
            nb::gil_scoped_release release;
            self.serve();
          },
          "Help with the loops of the threads within `with pool` until there is none.");
}

}  // namespace svmosaic

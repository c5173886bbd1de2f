#include "bind/python/call_stops.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// A request to stop: tf.experimental.Cancellation's.
struct Request {
  std::shared_ptr<CancellationToken> token;
};
// One entering of a request; those that are left stay in the contexts that were
// copied meanwhile.
struct EnteredRequest {
  std::shared_ptr<CancellationToken> token;
  bool active = true;
};

// The bound `get` of the context variable with a tuple of EnteredRequests, the
// outermost first. Set once; never freed.
PyObject* get_entered = nullptr;

// Of so many seconds, or of None: for ever.
std::shared_ptr<CancellationToken> NewToken(nb::object seconds) {
  if (seconds.is_none()) return std::make_shared<CancellationToken>();
  return std::make_shared<CancellationToken>(CancellationToken::Clock::now() +
                                             TimeOf(nb::cast<double>(seconds)));
}

}  // namespace

std::chrono::nanoseconds TimeOf(double seconds) {
  constexpr double kMost = 3e9;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kMost)));
}

struct CallStops::Scopes {
  std::vector<std::shared_ptr<CancellationToken>> tokens;
  std::deque<StopScope> open;

  // In the reverse order of their making, which is not a deque's.
  ~Scopes() {
    while (!open.empty()) open.pop_back();
  }
};

void CallStops::Open() {
  Ref entered(get_entered ? Called<PyObject_CallNoArgs>(get_entered) : nullptr);
  if (!entered) return PyErr_Clear();
  std::unique_ptr<Scopes> scopes;
  const Py_ssize_t n = PyTuple_Size(entered.get());
  for (Py_ssize_t i = 0; i < n; ++i) {
    EnteredRequest* request = nullptr;
    nb::handle item = PyTuple_GetItem(entered.get(), i);
    if (!nb::try_cast(item, request) || !request->active) continue;
    if (!scopes) scopes = std::make_unique<Scopes>();
    scopes->tokens.push_back(request->token);
    scopes->open.emplace_back(request->token.get());
  }
  scopes_ = scopes.release();
}

void CallStops::Close() { delete scopes_; }

void AddCancellation(nb::module_& m) {
  nb::class_<Request>(m, "StopRequest")
      .def(
          "__init__",
          [](Request* r, nb::object seconds) {
            new (r) Request{NewToken(std::move(seconds))};
          },
          nb::arg("seconds").none())
      .def("cancel", [](const Request& r) { r.token->Cancel(); })
      .def_prop_ro("cancelled",
                   [](const Request& r) { return r.token->cancelled(); });
  nb::class_<EnteredRequest>(m, "EnteredRequest")
      .def("__init__",
           [](EnteredRequest* e, const Request& r) {
             new (e) EnteredRequest{r.token};
             ++entered_cancellations;
           })
      .def_ro("active", &EnteredRequest::active)
      .def("leave", [](EnteredRequest& e) {
        if (std::exchange(e.active, false)) --entered_cancellations;
      });
  m.def("watch_entered_requests",
        [](nb::object get) { get_entered = get.release().ptr(); });
}

}  // namespace headrace::bind

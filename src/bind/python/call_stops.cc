#include "bind/python/call_stops.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "base/model_files.h"
#include "bind/python/graph_object.h"
#include "bind/python/safe_mode.h"

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

// One entering of a safe mode.
struct EnteredMode {
  SandboxPtr sandbox;
  bool active = true;
};

// The bound `get` of the context variable with a tuple of those, the outermost
// first. Set once; never freed.
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
  // (Tokens outlive the scopes that listen to them.)
  std::vector<std::shared_ptr<CancellationToken>> tokens;
  std::deque<std::variant<StopScope, SandboxCall>> open;

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
    EnteredMode* mode = nullptr;
    nb::handle item = PyTuple_GetItem(entered.get(), i);
    if (nb::try_cast(item, mode) && mode != nullptr && mode->active) {
      if (!scopes) scopes = std::make_unique<Scopes>();
      scopes->open.emplace_back(std::in_place_type<SandboxCall>, mode->sandbox);
      continue;
    }
    if (!nb::try_cast(item, request) || !request->active) continue;
    if (!scopes) scopes = std::make_unique<Scopes>();
    scopes->tokens.push_back(request->token);
    scopes->open.emplace_back(std::in_place_type<StopScope>,
                              request->token.get());
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
  nb::class_<EnteredMode>(m, "EnteredSafeMode")
      .def("__init__",
           [](EnteredMode* e, const PySafeMode& mode) {
             new (e) EnteredMode{mode.sandbox};
             ++entered_cancellations;
           })
      .def_ro("active", &EnteredMode::active)
      .def("leave", [](EnteredMode& e) {
        if (std::exchange(e.active, false)) --entered_cancellations;
      });
  nb::class_<PySafeMode>(m, "SafeModeCore")
      .def("__init__",
           [](PySafeMode* mode, const std::string& text) {
             auto policy = SafetyPolicy::Parse(text);
             if (!policy.ok()) ThrowStatus(policy.status());
             auto made = MakeSandbox(*std::move(policy), "this safe mode");
             if (!made.ok()) ThrowStatus(made.status());
             new (mode) PySafeMode{*std::move(made)};
           })
      .def_prop_ro("text",
                   [](const PySafeMode& mode) {
                     return mode.sandbox->policy().ToString();
                   })
      .def_prop_ro(
          "memory",
          [](const PySafeMode& mode) { return mode.sandbox->memory(); })
      .def_prop_ro("peak_memory", [](const PySafeMode& mode) {
        return mode.sandbox->peak_memory();
      });
  // Lets the model in the folder read its own variables and assets, within the
  // modes that are entered; until the result is gone.
  nb::class_<ModelFiles>(m, "ModelFiles").def("end", &ModelFiles::End);
  m.def("permit_model_files",
        [](const std::string& folder, const std::vector<std::string>& assets) {
          const CallStops stops;
          auto files = ModelFiles::Permit(folder, assets);
          if (!files.ok()) ThrowStatus(files.status());
          return *std::move(files);
        });
  m.def("watch_entered_requests",
        [](nb::object get) { get_entered = get.release().ptr(); });
}

}  // namespace headrace::bind

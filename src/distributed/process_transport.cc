#include "distributed/process_transport.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "base/files/files.h"
#include "base/mutex.h"
#include "distributed/load.h"

namespace headrace::distributed {
namespace {

class KeyedTransport : public Transport {
 public:
  KeyedTransport(Transport* transport, TlsKeys keys)
      : transport_(transport), keys_(std::move(keys)) {}

  std::shared_ptr<Channel> Connect(const std::string& address,
                                   const ConnectOptions& options) override {
    ConnectOptions keyed = options;
    if (keyed.tls.empty()) keyed.tls = keys_;
    return transport_->Connect(address, keyed);
  }
  std::unique_ptr<Listener> Listen(ListenOptions options,
                                   std::string* error) override {
    if (options.tls.empty()) options.tls = keys_;
    return transport_->Listen(std::move(options), error);
  }

 private:
  Transport* const transport_;
  const TlsKeys keys_;
};

}  // namespace

StatusOr<TlsKeys> KeysOfEnvironment(
    const std::function<const char*(const char*)>& variable) {
  TlsKeys keys;
  struct Said {
    const char* name;
    std::string* text;
    const char* begins;
  };
  const Said all[] = {
      {"HEADRACE_CLUSTER_CERTIFICATE", &keys.certificate, "CERTIFICATE-----"},
      {"HEADRACE_CLUSTER_KEY", &keys.key, "PRIVATE KEY-----"},
      {"HEADRACE_CLUSTER_ROOTS", &keys.roots, "CERTIFICATE-----"},
  };
  const char* missing = nullptr;
  const char* there = nullptr;
  for (const Said& said : all) {
    const char* path = variable(said.name);
    if (path == nullptr || *path == '\0') {
      missing = said.name;
      continue;
    }
    there = said.name;
    StatusOr<std::string> text = ReadWholeFile(PosixFileSystem(), path);
    if (!text.ok()) {
      return Status(text.status().code(),
                    absl::StrCat(said.name, ": ", text.status().message()));
    }
    if (!absl::StrContains(*text, said.begins)) {
      return InvalidArgument(said.name, ": ", path, " has no ", said.begins,
                             " in PEM");
    }
    *said.text = *std::move(text);
  }
  if (there == nullptr) return keys;
  if (missing != nullptr) {
    return InvalidArgument(there, " is set and ", missing,
                           " is not: TLS between tasks needs a certificate, "
                           "its key and those who sign others'");
  }
  keys.client_roots = keys.roots;
  return keys;
}

std::unique_ptr<Transport> WithKeys(Transport* transport, TlsKeys keys) {
  return std::make_unique<KeyedTransport>(transport, std::move(keys));
}

StatusOr<Transport*> TransportOfProcess() {
  static Mutex* const mutex = new Mutex;
  static Transport* made = nullptr;  // as long as the process
  MutexLock lock(*mutex);
  if (made != nullptr) return made;
  HR_ASSIGN_OR_RETURN(auto* transport, LoadTransport());
  HR_ASSIGN_OR_RETURN(TlsKeys keys, KeysOfEnvironment([](const char* name) {
                        return std::getenv(name);
                      }));
  made =
      keys.empty() ? transport : WithKeys(transport, std::move(keys)).release();
  return made;
}

}  // namespace headrace::distributed

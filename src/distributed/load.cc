#include "distributed/load.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/mutex.h"
#include "base/shared_library.h"
#include "distributed/interface.h"

namespace headrace::distributed {
namespace {

constexpr char kLibrary[] = "libheadrace_grpc.so";

// The folder of what this code is in, with its slash.
std::string FolderOfThis() {
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&FolderOfThis), &here) == 0 ||
      here.dli_fname == nullptr) {
    return "";
  }
  std::string path = here.dli_fname;
  if (path.find('/') == std::string::npos) {  // a program, by the name it has
    path.resize(PATH_MAX);
    path.resize(std::max<ssize_t>(
        0, readlink("/proc/self/exe", path.data(), path.size())));
  }
  return path.substr(0, path.rfind('/') + 1);
}

std::vector<std::string> Places() {
  const char* given = std::getenv("HEADRACE_GRPC_LIBRARY");
  if (given != nullptr && *given != '\0') return {given};
  std::vector<std::string> places;
  const std::string folder = FolderOfThis();
  if (!folder.empty()) {
    for (const char* way : {"", "../headrace_serving/"}) {
      const std::string path = absl::StrCat(folder, way, kLibrary);
      if (access(path.c_str(), R_OK) == 0) places.push_back(path);
    }
  }
  places.emplace_back(kLibrary);
  return places;
}

StatusOr<void*> Open() {
  // What gRPC stands on, of which a process may show other copies.
  constexpr ShownSymbol kSymbols[] = {{"grpc_init", "libgrpc"},
                                      {"SSL_CTX_new", "libssl"},
                                      {"_ZN3re23RE2D1Ev", "libre2"}};
  StatusOr<void*> library = OpenSharedLibrary(Places(), kSymbols);
  if (library.ok()) return library;
  return FailedPrecondition(
      "tasks of a cluster talk over gRPC, which needs ", kLibrary,
      ", and it cannot be loaded (", library.status().message(),
      "). It comes with `pip install headrace-serving`, with the component "
      "grpc "
      "of the C++ library, or by HEADRACE_GRPC_LIBRARY=/path/to/",
      kLibrary);
}

StatusOr<Transport*> Load() {
  HR_ASSIGN_OR_RETURN(void* library, Open());
  const auto entry = reinterpret_cast<GrpcTransportEntry*>(
      dlsym(library, kGrpcTransportEntry));
  if (entry == nullptr) {
    return FailedPrecondition(kLibrary, " has no ", kGrpcTransportEntry);
  }
  std::string error;
  Transport* transport = entry(TransportInterface().c_str(), &error);
  if (transport == nullptr) return FailedPrecondition(error);
  return transport;
}

}  // namespace

StatusOr<Transport*> LoadTransport() {
  static Mutex mutex;  // of `loaded`
  static Transport* loaded = nullptr;
  const MutexLock lock(mutex);
  if (loaded == nullptr) {
    HR_ASSIGN_OR_RETURN(loaded, Load());
  }
  return loaded;
}

}  // namespace headrace::distributed

#include "base/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/match.h"

namespace headrace {
namespace {

bool OthersShow(absl::Span<const ShownSymbol> symbols) {
  for (const ShownSymbol& s : symbols) {
    Dl_info where;
    void* found = dlsym(RTLD_DEFAULT, s.symbol);
    if (found == nullptr || dladdr(found, &where) == 0) continue;
    const StringView path = where.dli_fname;
    if (!absl::StartsWith(path.substr(path.rfind('/') + 1), s.library)) {
      return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<void*> OpenSharedLibrary(const std::vector<std::string>& places,
                                  absl::Span<const ShownSymbol> symbols) {
  std::string errors;
  // Its own libraries first: not where nothing is in the way, as what takes the
  // place of malloc is then passed over, too.
  const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE |
                    (OthersShow(symbols) ? RTLD_DEEPBIND : 0);
  for (const std::string& place : places) {
    void* library = dlopen(place.c_str(), flags);
    if (library != nullptr) return library;
    const char* error = dlerror();
    absl::StrAppend(&errors, errors.empty() ? "" : "; ",
                    error != nullptr ? error : place);
  }
  return FailedPrecondition(errors);
}

}  // namespace headrace

#if __has_include(<curl/curl.h>)
#include "base/net/curl.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/shared_library.h"

namespace headrace {
namespace {

template <typename F>
Status FindSymbol(void* library, const char* name, F* out) {
  *out = reinterpret_cast<F>(dlsym(library, name));
  if (*out != nullptr) return OkStatus();
  return FailedPrecondition("libcurl has no ", name);
}

StatusOr<Curl> FindAll(void* library) {
  Curl c = {};
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_global_init", &global_init));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_version_info", &version_info));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_init", &c.init));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_setopt", &c.setopt));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_perform", &c.perform));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_getinfo", &c.getinfo));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_reset", &c.reset));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_cleanup", &c.cleanup));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_easy_strerror", &c.strerror));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_slist_append", &c.append));
  HR_RETURN_IF_ERROR(FindSymbol(library, "curl_slist_free_all", &c.free_all));
  if (global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
    return FailedPrecondition("libcurl cannot be begun");
  }
  const auto* version = version_info(CURLVERSION_NOW);
  c.kerberos = (version->features & CURL_VERSION_SPNEGO) != 0;
  return c;
}

StatusOr<Curl> Load() {
  std::vector<std::string> places = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  const char* given = std::getenv("HEADRACE_CURL_LIBRARY");
  if (given != nullptr && *given != '\0') places = {given};
  constexpr ShownSymbol kSymbols[] = {{"curl_easy_init", "libcurl"},
                                      {"SSL_CTX_new", "libssl"}};
  const StatusOr<void*> library = OpenSharedLibrary(places, kSymbols);
  if (library.ok()) return FindAll(*library);
  return FailedPrecondition(
      "files of hdfs://, webhdfs:// and s3:// are read by libcurl, and it "
      "cannot be loaded (",
      library.status().message(),
      "). Debian's package is libcurl4; HEADRACE_CURL_LIBRARY=/path/to/"
      "libcurl.so.4 names another");
}

}  // namespace

StatusOr<const Curl*> LoadCurl() {
  static ProcessMutex* const mutex = new ProcessMutex;  // of `loaded`
  static const Curl* loaded = nullptr;
  const MutexLock lock(*mutex);
  if (loaded == nullptr) {
    HR_ASSIGN_OR_RETURN(const Curl curl, Load());
    loaded = new Curl(curl);
  }
  return loaded;
}

}  // namespace headrace
#endif

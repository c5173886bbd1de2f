// libcurl, as far as it is used here.
#pragma once

#include <curl/curl.h>

#include "base/status.h"

namespace headrace {

struct Curl {
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_reset) reset;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_strerror) strerror;
  decltype(&::curl_slist_append) append;
  decltype(&::curl_slist_free_all) free_all;
  bool kerberos;  // whether it knows SPNEGO
};

// The system's libcurl, loaded once: HEADRACE_CURL_LIBRARY, else libcurl.so.4
// or libcurl-gnutls.so.4. FailedPrecondition, with what to install, where it
// cannot be; the next call tries again.
StatusOr<const Curl*> LoadCurl();

}  // namespace headrace

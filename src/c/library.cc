// Libraries that are loaded at run time, servers, listeners.
#include <dlfcn.h>

#include "c/buffer.h"
#include "c/status.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/op_def.pb.h"

struct TF_Library {
  void* handle;
};

namespace headrace::capi {
namespace {

StatusOr<TF_Library*> LoadLibrary(const char* name) {
  HR_RETURN_IF_ERROR(NotNull(name, "library_filename"));
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    // A library that defines its ops by TensorFlow's C++ classes wants symbols
    // that are not here, and says which.
    return NotFound(error ? error : "the library cannot be loaded");
  }
  return new TF_Library{handle};
}

Status NoServers() {
  return Unimplemented(
      "servers of clusters (TF_Server) are not part of this library yet");
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::LoadLibrary(library_filename); });
}

// The list is the library's: callers of upstream's do not free it. A loaded
// library cannot define ops here, so that it is empty.
TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  return TF_Buffer{"", 0, nullptr};
}

// What is loaded stays: something of it may still run.
void TF_DeleteLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }

void TF_RegisterFilesystemPlugin(const char* plugin_filename,
                                 TF_Status* status) {
  capi::Into(status, [] {
    return headrace::Unimplemented(
        "file systems cannot be added by plug-ins: TF_RegisterFilesystemPlugin "
        "is not part of this library");
  });
}

TF_Server* TF_NewServer(const void* proto, size_t proto_len,
                        TF_Status* status) {
  return capi::OrNull(status, []() -> headrace::StatusOr<TF_Server*> {
    return capi::NoServers();
  });
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  capi::Into(status, capi::NoServers);
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  capi::Into(status, capi::NoServers);
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  capi::Into(status, capi::NoServers);
}

const char* TF_ServerTarget(TF_Server* server) { return ""; }

void TF_DeleteServer(TF_Server* server) {}

// The library logs nothing: errors are told by statuses, and tf.print writes
// where it is told to.
void TF_RegisterLogListener(void (*listener)(const char*)) {}

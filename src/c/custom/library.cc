// Libraries that are loaded at run time, listeners.
#include "c/custom/op_library.h"
#include "c/status.h"
#include "tensorflow/c/c_api.h"

namespace capi = headrace::capi;

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::LoadOpLibrary(library_filename); });
}

// The list is the library's: callers of upstream's do not free it.
TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  if (lib_handle == nullptr) return TF_Buffer{"", 0, nullptr};
  return TF_Buffer{lib_handle->op_list.data(), lib_handle->op_list.size(),
                   nullptr};
}

// What is loaded stays, and so does what is known of it: its ops are used on.
void TF_DeleteLibraryHandle(TF_Library* lib_handle) {}

void TF_RegisterFilesystemPlugin(const char* plugin_filename,
                                 TF_Status* status) {
  capi::Into(status, [] {
    return headrace::Unimplemented(
        "file systems cannot be added by plug-ins: TF_RegisterFilesystemPlugin "
        "is not part of this library");
  });
}

// The library logs nothing: errors are told by statuses, and tf.print writes
// where it is told to.
void TF_RegisterLogListener(void (*listener)(const char*)) {}

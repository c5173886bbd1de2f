#include "c/status.h"

#include <cerrno>
#include <system_error>

#include "tensorflow/c/tf_status.h"

namespace headrace::capi {

void SetStatus(TF_Status* out, Status s) {
  out->payloads.clear();
  out->status = std::move(s);
  out->message = std::string(out->status.message());
}

Status NotNull(const void* p, StringView name) {
  return p ? OkStatus() : InvalidArgument(name, " is null");
}

namespace {

// Upstream's table of what the system's errors mean.
absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case 0:
      return absl::StatusCode::kOk;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDESTADDRREQ:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case ENOPROTOOPT:
    case ENOSTR:
    case ENOTSOCK:
    case ENOTTY:
    case EPROTOTYPE:
    case ESPIPE:
      return absl::StatusCode::kInvalidArgument;
    case ETIMEDOUT:
    case ETIME:
      return absl::StatusCode::kDeadlineExceeded;
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case ESRCH:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case EADDRNOTAVAIL:
    case EALREADY:
      return absl::StatusCode::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EADDRINUSE:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTBLK:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ETXTBSY:
      return absl::StatusCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case EMLINK:
    case ENFILE:
    case ENOBUFS:
    case ENODATA:
    case ENOMEM:
    case ENOSR:
    case EUSERS:
      return absl::StatusCode::kResourceExhausted;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE:
      return absl::StatusCode::kOutOfRange;
    case ENOSYS:
    case ENOTSUP:
    case EAFNOSUPPORT:
    case EPFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EXDEV:
      return absl::StatusCode::kUnimplemented;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLCK:
    case ENOLINK:
      return absl::StatusCode::kUnavailable;
    case EDEADLK:
    case ESTALE:
      return absl::StatusCode::kAborted;
    case ECANCELED:
      return absl::StatusCode::kCancelled;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace
}  // namespace headrace::capi

using headrace::capi::SetStatus;

TF_Status* TF_NewStatus() { return new (std::nothrow) TF_Status; }

void TF_DeleteStatus(TF_Status* s) { delete s; }

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  // A status without an error has no message.
  if (code == TF_OK) return SetStatus(s, headrace::OkStatus());
  SetStatus(s,
            absl::Status(static_cast<absl::StatusCode>(code), msg ? msg : ""));
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  if (s->status.ok() || key == nullptr || value == nullptr) return;
  s->payloads[key] = value;
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor,
                       void* capture) {
  if (visitor == nullptr) return;
  for (const auto& [key, value] : s->payloads) {
    visitor(key.c_str(), value.c_str(), capture);
  }
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code,
                             const char* context) {
  const absl::StatusCode code = headrace::capi::CodeOfErrno(error_code);
  if (code == absl::StatusCode::kOk) {
    return SetStatus(s, headrace::OkStatus());
  }
  SetStatus(
      s, absl::Status(
             code, absl::StrCat(context ? context : "", "; ",
                                std::generic_category().message(error_code))));
}

TF_Code TF_GetCode(const TF_Status* s) {
  return static_cast<TF_Code>(s->status.code());
}

const char* TF_Message(const TF_Status* s) { return s->message.c_str(); }

#include "base/files/file_system.h"

#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "base/files/memory_file_system.h"
#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/sandbox.h"

namespace headrace {
namespace {

struct Schemes {
  Schemes() {
    by_name["file"] = PosixFileSystem();
    by_name["ram"] = new MemoryFileSystem;
  }
  ProcessMutex mutex;
  std::map<std::string, FileSystem*, std::less<>> by_name
      ABSL_GUARDED_BY(mutex);
};

Schemes& AllSchemes() {
  static Schemes* const schemes = new Schemes;
  return *schemes;
}

bool IsSchemeName(StringView s) {
  if (s.empty() || !absl::ascii_isalpha(s[0])) return false;
  for (char c : s) {
    if (!absl::ascii_isalnum(c) && c != '+' && c != '-' && c != '.') {
      return false;
    }
  }
  return true;
}

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case EBADF:
      return absl::StatusCode::kFailedPrecondition;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::StatusCode::kInvalidArgument;
    case EFBIG:
    case EOVERFLOW:
      return absl::StatusCode::kOutOfRange;
    case EAGAIN:
    case EINTR:
      return absl::StatusCode::kUnavailable;
    case ENOSYS:
    case ENOTSUP:
    case EXDEV:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

Status RandomAccessFile::Read(uint64_t offset, absl::Span<char> out) const {
  HR_ASSIGN_OR_RETURN(const size_t n, ReadSome(offset, out));
  if (n == out.size()) return OkStatus();
  return OutOfRange(path(), ": wanted ", out.size(), " bytes at ", offset,
                    ", the file ends at ", offset + n);
}

StatusOr<FileSystem*> FileSystemFor(StringView path, std::string* local) {
  // Here for all file systems; those of this machine ask again, knowing what
  // is done with the path.
  if (InSandbox() && !CheckSandboxFile(path, /*write=*/true).ok()) [[unlikely]]
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/false));
  const size_t colon = path.find("://");
  *local = std::string(path);
  if (colon == StringView::npos || !IsSchemeName(path.substr(0, colon))) {
    return PosixFileSystem();
  }
  const StringView scheme = path.substr(0, colon);
  Schemes& schemes = AllSchemes();
  MutexLock lock(schemes.mutex);
  const auto found = schemes.by_name.find(scheme);
  if (found == schemes.by_name.end()) {
    return Unimplemented("File system scheme '", scheme,
                         "' not implemented (file: '", path, "')");
  }
  if (scheme == "file") *local = std::string(path.substr(colon + 3));
  return found->second;
}

Status RegisterFileSystem(StringView scheme, FileSystem* fs) {
  if (!IsSchemeName(scheme)) {
    return InvalidArgument("'", scheme, "' is no name of a scheme");
  }
  Schemes& schemes = AllSchemes();
  MutexLock lock(schemes.mutex);
  if (!schemes.by_name.emplace(std::string(scheme), fs).second) {
    return AlreadyExists("file system scheme '", scheme, "' is taken");
  }
  return OkStatus();
}

Status ErrnoStatus(int error_number, StringView what) {
  return Status(CodeOf(error_number),
                absl::StrCat(what, "; ", std::strerror(error_number)));
}

}  // namespace headrace

#include "serving/manager/version_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>

#include "absl/functional/function_ref.h"
#include "base/files/files.h"

namespace headrace::serving {
namespace {

// Folders within each other that are looked into: a link may lead in a circle.
constexpr int kMostFolders = 16;

Status ForEachFile(
    FileSystem* fs, const std::string& folder, int depth,
    absl::FunctionRef<void(const std::string& path, const FileStat&)> see) {
  HR_ASSIGN_OR_RETURN(const auto names, fs->List(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    const auto stat = fs->Stat(path);
    if (!stat.ok()) continue;  // it went, or is a link to nowhere
    if (!stat->is_directory) {
      see(path, *stat);
    } else if (depth < kMostFolders) {
      HR_RETURN_IF_ERROR(ForEachFile(fs, path, depth + 1, see));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<uint64_t> BytesBelow(const std::string& folder) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  uint64_t sum = 0;
  HR_RETURN_IF_ERROR(
      ForEachFile(fs, local, 0, [&](const std::string&, const FileStat& stat) {
        const uint64_t left = std::numeric_limits<uint64_t>::max() - sum;
        sum += std::min(stat.size, left);
      }));
  return sum;
}

uint64_t EstimateOfMemory(uint64_t bytes_of_files) {
  const uint64_t fifth = bytes_of_files / 5;
  const uint64_t left = std::numeric_limits<uint64_t>::max() - bytes_of_files;
  return bytes_of_files + std::min(fifth, left);
}

void DropFileCache(const std::string& folder) {
#ifdef POSIX_FADV_DONTNEED
  std::string local;
  const auto fs = FileSystemFor(folder, &local);
  if (!fs.ok() || *fs != PosixFileSystem()) return;
  (void)ForEachFile(
      *fs, local, 0, [](const std::string& path, const FileStat& stat) {
        if (stat.size == 0) return;
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return;
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
      });
#endif
}

}  // namespace headrace::serving

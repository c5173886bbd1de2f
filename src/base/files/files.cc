#include "base/files/files.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/remote_file_system.h"
#include "base/files/replace_file.h"
#include "base/host_name.h"
#include "base/thread_pool.h"

namespace headrace {
namespace {

// One system call for a megabyte costs nothing beside the copy; more would only
// push other data out of the cache.
constexpr size_t kCopyBytes = size_t{1} << 20;
// Temporary names go on with HostMark(), "-", the process' id, "-".
constexpr char kTemporaryMark[] = ".tmp";

// Tells machines apart that share a folder: a hash of the host's name.
uint32_t HostMark() {
  static const uint32_t mark = [] {
    // FNV-1a: two hosts of one folder must differ, nothing hangs on its
    // quality.
    uint32_t hash = 2166136261u;
    for (const char c : HostName()) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    }
    return hash;
  }();
  return mark;
}

// Matches one character against the set that begins at pattern[*at] == '[';
// *at ends behind the set. A set without its ']' matches nothing.
bool MatchesSet(char c, StringView pattern, size_t* at) {
  size_t i = *at + 1;
  bool negated = false, found = false;
  if (i < pattern.size() && (pattern[i] == '^' || pattern[i] == '!')) {
    negated = true;
    ++i;
  }
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']');
       first = false) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const unsigned char low = pattern[i++];
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = pattern[i + 1];
      i += 2;
    }
    const unsigned char u = c;
    if (low <= u && u <= high) found = true;
  }
  if (i >= pattern.size()) return false;
  *at = i + 1;
  return found != negated;
}

// Matches c against the one-character pattern at *at and steps over it.
bool MatchesOne(char c, StringView pattern, size_t* at) {
  if (pattern[*at] == '?') return ++*at, true;
  if (pattern[*at] == '[') return MatchesSet(c, pattern, at);
  if (pattern[*at] == '\\' && *at + 1 < pattern.size()) ++*at;
  return pattern[(*at)++] == c;
}

bool HasPattern(StringView part) {
  return part.find_first_of("*?[\\") != StringView::npos;
}

Status WriteAndSync(FileSystem* fs, const std::string& path,
                    absl::FunctionRef<Status(WritableFile*)> write) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(path, WriteMode::kCreateNew));
  HR_RETURN_IF_ERROR(write(file.get()));
  HR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

std::string JoinPath(StringView folder, StringView name) {
  if (folder.empty() || (!name.empty() && name[0] == '/')) {
    return std::string(name);
  }
  return absl::StrCat(folder, folder.back() == '/' ? "" : "/", name);
}

StringView DirName(StringView path) {
  const size_t slash = path.rfind('/');
  if (slash == StringView::npos) return "";
  return path.substr(0, slash == 0 ? 1 : slash);
}

StringView BaseName(StringView path) {
  return path.substr(path.rfind('/') + 1);
}

Status LoadFile(FileSystem* fs, const std::string& path, absl::Span<char> out) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToRead(path));
  if (file->size() < out.size()) {
    return OutOfRange(path, " has ", file->size(), " bytes, not ", out.size());
  }
  // Parts that several threads read side by side: 8 MiB from the page cache
  // take a core some 0.8 ms, far above the cost of handing a part out. The
  // estimate of 0.2 ns a byte decides only whether the loop is shared.
  constexpr size_t kPart = size_t{8} << 20;
  constexpr double kNanosecondsPerByte = 0.2;
  const int64_t parts = (out.size() + kPart - 1) / kPart;
  std::vector<Status> statuses(parts);
  ParallelBlocks(
      parts, 1, kPart * kNanosecondsPerByte, [&](int64_t i, int64_t, int64_t) {
        statuses[i] = file->Read(i * kPart, out.subspan(i * kPart, kPart));
      });
  for (const Status& s : statuses) {
    if (absl::IsOutOfRange(s)) {
      return DataLoss(path, " lost bytes while it was read");
    }
    HR_RETURN_IF_ERROR(s);
  }
  return OkStatus();
}

bool FileExists(FileSystem* fs, const std::string& path) {
  return fs->Stat(path).ok();
}

StatusOr<std::string> ReadWholeFile(FileSystem* fs, const std::string& path) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToRead(path));
  // Files of /proc say that they are empty, and others may grow meanwhile:
  // read until nothing comes.
  std::string out;
  size_t want = std::min<uint64_t>(file->size(), out.max_size() / 2) + 1;
  for (size_t done = 0;;) {
    out.resize(done + want);
    HR_ASSIGN_OR_RETURN(const size_t n,
                        file->ReadSome(done, absl::MakeSpan(&out[done], want)));
    done += n;
    if (n < want) {
      out.resize(done);
      return out;
    }
    want = kCopyBytes;
  }
}

std::string TemporaryNameFor(StringView path) {
  static std::atomic<uint64_t> count{0};
  static const uint64_t kSalt = std::random_device()();
  return absl::StrCat(path, kTemporaryMark, HostMark(), "-", getpid(), "-",
                      kSalt, "-", ++count);
}

Status DeleteAbandonedFiles(FileSystem* fs, const std::string& folder) {
  HR_ASSIGN_OR_RETURN(const auto names,
                      fs->List(folder.empty() ? "." : folder));
  Status first;
  for (const std::string& name : names) {
    const size_t mark = name.rfind(kTemporaryMark);
    if (mark == std::string::npos) continue;
    const char* begin = name.c_str() + mark + strlen(kTemporaryMark);
    char* end = nullptr;
    if (strtoul(begin, &end, 10) != HostMark() || *end != '-') continue;
    begin = end + 1;
    const int64_t pid = strtoll(begin, &end, 10);
    if (end == begin || *end != '-' || pid <= 0 || pid > INT32_MAX) continue;
    // Of a process that still runs, or of another user's: not abandoned.
    if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    first.Update(fs->Delete(JoinPath(folder, name)));
  }
  return first;
}

Status WriteFileAtomically(FileSystem* fs, const std::string& path,
                           StringView data) {
  return ReplaceFile(fs, path,
                     [data](WritableFile* file) { return file->Append(data); });
}

Status ReplaceFile(FileSystem* fs, const std::string& path,
                   absl::FunctionRef<Status(WritableFile*)> write) {
  const std::string temporary = TemporaryNameFor(path);
  // Synced before the rename: else a crash could leave the new name with no
  // bytes.
  Status status = WriteAndSync(fs, temporary, write);
  if (status.ok()) status = fs->Rename(temporary, path);
  if (!status.ok()) {
    fs->Delete(temporary).IgnoreError();
    return status;
  }
  // And the folder behind it, so that the new name itself is on the disk.
  const StringView folder = DirName(path);
  return fs->SyncDirectory(folder.empty() ? "." : std::string(folder));
}

Status CreateDirectories(FileSystem* fs, const std::string& path) {
  const StatusOr<FileStat> stat = fs->Stat(path);
  if (stat.ok()) {
    if (stat->is_directory) return OkStatus();
    return FailedPrecondition(path, " is not a directory");
  }
  // (The latter: what should be a folder is a file, which is told below.)
  if (!absl::IsNotFound(stat.status()) &&
      !absl::IsFailedPrecondition(stat.status())) {
    return stat.status();
  }
  std::string shorter = path;
  while (shorter.size() > 1 && shorter.back() == '/') shorter.pop_back();
  const std::string parent(DirName(shorter));
  // "s3:/" is the scheme of "s3://bucket".
  if (!parent.empty() && parent != shorter && !absl::EndsWith(parent, ":/")) {
    HR_RETURN_IF_ERROR(CreateDirectories(fs, parent));
  }
  const Status status = fs->CreateDirectory(shorter);
  return absl::IsAlreadyExists(status) ? OkStatus() : status;
}

Status DeleteRecursively(FileSystem* fs, const std::string& path) {
  if (auto* remote = dynamic_cast<RemoteFileSystem*>(fs)) {
    return remote->DeleteTree(path);
  }
  // A link, even one to a folder, is deleted itself and never followed.
  const Status deleted = fs->Delete(path);
  if (deleted.ok()) return deleted;
  HR_ASSIGN_OR_RETURN(const FileStat stat, fs->Stat(path));
  if (!stat.is_directory) return deleted;
  HR_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(path));
  Status first;
  for (const std::string& name : names) {
    first.Update(DeleteRecursively(fs, JoinPath(path, name)));
  }
  first.Update(fs->DeleteDirectory(path));
  return first;
}

Status CopyFile(FileSystem* from_fs, const std::string& from, FileSystem* to_fs,
                const std::string& to) {
  if (auto* remote = dynamic_cast<RemoteFileSystem*>(from_fs);
      remote != nullptr && from_fs == to_fs) {
    const Status copied = remote->Copy(from, to);
    if (!absl::IsUnimplemented(copied)) return copied;
  }
  HR_ASSIGN_OR_RETURN(auto in, from_fs->OpenToRead(from));
  HR_ASSIGN_OR_RETURN(auto out, to_fs->OpenToWrite(to, WriteMode::kTruncate));
  std::vector<char> buffer(kCopyBytes);
  for (uint64_t offset = 0;;) {
    HR_ASSIGN_OR_RETURN(const size_t n,
                        in->ReadSome(offset, absl::MakeSpan(buffer)));
    if (n == 0) return out->Close();
    HR_RETURN_IF_ERROR(out->Append(StringView(buffer.data(), n)));
    offset += n;
  }
}

Status LinkOrCopyFile(FileSystem* fs, const std::string& from,
                      const std::string& to) {
  if (fs == PosixFileSystem()) {
    if (link(from.c_str(), to.c_str()) == 0) return OkStatus();
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) {
      return ErrnoStatus(errno, absl::StrCat(from, " -> ", to));
    }
  }
  if (FileExists(fs, to)) return AlreadyExists(to, ": the file exists");
  const Status copied = CopyFile(fs, from, fs, to);
  if (!copied.ok()) fs->Delete(to).IgnoreError();
  return copied;
}

bool MatchesPattern(StringView name, StringView pattern) {
  // On a mismatch, go back to the last star and let it take one more.
  size_t n = 0, p = 0, star = StringView::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = n;
      continue;
    }
    size_t next = p;
    if (p < pattern.size() && MatchesOne(name[n], pattern, &next)) {
      p = next;
      ++n;
    } else if (star != StringView::npos) {
      p = star;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

StatusOr<std::vector<std::string>> MatchPaths(FileSystem* fs,
                                              const std::string& pattern) {
  if (!HasPattern(pattern)) {
    if (!FileExists(fs, pattern)) return std::vector<std::string>();
    return std::vector<std::string>{pattern};
  }
  const std::string parent(DirName(pattern));
  const StringView last = BaseName(pattern);
  std::vector<std::string> folders = {parent};
  if (HasPattern(parent)) {
    HR_ASSIGN_OR_RETURN(folders, MatchPaths(fs, parent));
  }
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    const auto names = fs->List(folder.empty() ? "." : folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (!MatchesPattern(name, last)) continue;
      found.push_back(folder.empty() ? "./" + name : JoinPath(folder, name));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace headrace

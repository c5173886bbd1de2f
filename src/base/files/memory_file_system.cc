#include "base/files/memory_file_system.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/match.h"

namespace headrace {
namespace {

using Content = MemoryFileSystem::Content;

int64_t Now() {
  return std::chrono::nanoseconds(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Without doubled and trailing slashes; "ram://a//b/" is "ram://a/b".
std::string Clean(const std::string& path) {
  const size_t scheme = path.find("://");
  const size_t start = scheme == std::string::npos ? 0 : scheme + 3;
  std::string out = path.substr(0, start);
  for (size_t i = start; i < path.size(); ++i) {
    if (path[i] == '/' && !out.empty() && out.back() == '/') continue;
    out.push_back(path[i]);
  }
  while (out.size() > start + 1 && out.back() == '/') out.pop_back();
  return out;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  if (slash >= 2 && path.compare(slash - 2, 3, "://") == 0) return "";
  return slash == 0 && path.size() > 1 ? "/" : path.substr(0, slash);
}

class MemoryReader : public RandomAccessFile {
 public:
  MemoryReader(std::shared_ptr<Content> content, std::string path)
      : content_(std::move(content)), path_(std::move(path)) {
    MutexLock lock(content_->mutex);
    size_ = content_->bytes.size();
  }
  StatusOr<size_t> ReadSome(uint64_t offset,
                            absl::Span<char> out) const override {
    MutexLock lock(content_->mutex);
    const StringView bytes = content_->bytes;
    if (offset >= bytes.size() || out.empty()) return size_t{0};
    const size_t n = std::min<size_t>(out.size(), bytes.size() - offset);
    std::memcpy(out.data(), bytes.data() + offset, n);
    return n;
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  const std::shared_ptr<Content> content_;
  const std::string path_;
  uint64_t size_;
};

class MemoryWriter : public WritableFile {
 public:
  MemoryWriter(std::shared_ptr<Content> content, std::string path)
      : content_(std::move(content)), path_(std::move(path)) {}
  Status Append(StringView data) override {
    MutexLock lock(content_->mutex);
    if (closed_) return FailedPrecondition(path_, ": the file is closed");
    content_->bytes.append(data.data(), data.size());
    content_->mtime_ns = Now();
    return OkStatus();
  }
  Status WriteAt(uint64_t offset, StringView data) override {
    MutexLock lock(content_->mutex);
    if (closed_) return FailedPrecondition(path_, ": the file is closed");
    std::string& bytes = content_->bytes;
    if (offset > bytes.max_size() - data.size()) {
      return OutOfRange(path_, ": no file has an offset of ", offset);
    }
    if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
    std::copy(data.begin(), data.end(), bytes.begin() + offset);
    content_->mtime_ns = Now();
    return OkStatus();
  }
  Status Sync() override { return OkStatus(); }
  uint64_t size() const override {
    MutexLock lock(content_->mutex);
    return content_->bytes.size();
  }
  Status Close() override {
    MutexLock lock(content_->mutex);
    closed_ = true;
    return OkStatus();
  }

 private:
  const std::shared_ptr<Content> content_;
  const std::string path_;
  bool closed_ = false;
};

}  // namespace

bool MemoryFileSystem::IsFolder(const std::string& path) const {
  return folders_.count(path) > 0;
}

void MemoryFileSystem::AddParents(const std::string& path) {
  for (std::string p = ParentOf(path); !p.empty(); p = ParentOf(p)) {
    if (!folders_.insert(p).second || p == "/") return;
  }
}

StatusOr<std::shared_ptr<Content>> MemoryFileSystem::Find(
    const std::string& path) {
  MutexLock lock(mutex_);
  const std::string name = Clean(path);
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  return ErrnoStatus(IsFolder(name) ? EISDIR : ENOENT, path);
}

StatusOr<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::OpenToRead(
    const std::string& path) {
  HR_ASSIGN_OR_RETURN(auto content, Find(path));
  return std::make_unique<MemoryReader>(std::move(content), path);
}

StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::OpenToWrite(
    const std::string& path, WriteMode mode) {
  MutexLock lock(mutex_);
  const std::string name = Clean(path);
  if (IsFolder(name)) return ErrnoStatus(EISDIR, path);
  if (name.empty()) return ErrnoStatus(ENOENT, path);
  std::shared_ptr<Content>& content = files_[name];
  if (content != nullptr && mode == WriteMode::kCreateNew) {
    return ErrnoStatus(EEXIST, path);
  }
  if (content == nullptr) {
    content = std::make_shared<Content>();
    AddParents(name);
  }
  MutexLock content_lock(content->mutex);
  if (mode == WriteMode::kTruncate) content->bytes.clear();
  content->mtime_ns = Now();
  return std::make_unique<MemoryWriter>(content, path);
}

StatusOr<FileStat> MemoryFileSystem::Stat(const std::string& path) {
  FileStat out;
  {
    MutexLock lock(mutex_);
    out.is_directory = IsFolder(Clean(path));
  }
  if (out.is_directory) return out;
  HR_ASSIGN_OR_RETURN(auto content, Find(path));
  MutexLock lock(content->mutex);
  out.size = content->bytes.size();
  out.mtime_ns = content->mtime_ns;
  return out;
}

Status MemoryFileSystem::Rename(const std::string& from,
                                const std::string& to) {
  MutexLock lock(mutex_);
  const std::string source = Clean(from), target = Clean(to);
  const auto found = files_.find(source);
  if (found != files_.end()) {
    if (IsFolder(target)) return ErrnoStatus(EISDIR, to);
    std::shared_ptr<Content> content = std::move(found->second);
    files_.erase(found);
    files_[target] = std::move(content);
    AddParents(target);
    return OkStatus();
  }
  if (!IsFolder(source)) return ErrnoStatus(ENOENT, from);
  if (IsFolder(target) || files_.count(target)) return ErrnoStatus(EEXIST, to);
  if (absl::StartsWith(target, source + "/")) return ErrnoStatus(EINVAL, to);
  std::map<std::string, std::shared_ptr<Content>> files;
  for (auto& [name, content] : files_) {
    const bool inside = absl::StartsWith(name, source + "/");
    files[inside ? target + name.substr(source.size()) : name] = content;
  }
  std::set<std::string> folders;
  for (const std::string& name : folders_) {
    const bool inside = name == source || absl::StartsWith(name, source + "/");
    folders.insert(inside ? target + name.substr(source.size()) : name);
  }
  files_.swap(files);
  folders_.swap(folders);
  AddParents(target);
  return OkStatus();
}

Status MemoryFileSystem::Delete(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string name = Clean(path);
  if (files_.erase(name) > 0) return OkStatus();
  return ErrnoStatus(IsFolder(name) ? EISDIR : ENOENT, path);
}

Status MemoryFileSystem::CreateDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string name = Clean(path);
  if (files_.count(name) || !folders_.insert(name).second) {
    return ErrnoStatus(EEXIST, path);
  }
  AddParents(name);
  return OkStatus();
}

Status MemoryFileSystem::DeleteDirectory(const std::string& path) {
  HR_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path));
  if (!names.empty()) return ErrnoStatus(ENOTEMPTY, path);
  MutexLock lock(mutex_);
  folders_.erase(Clean(path));
  return OkStatus();
}

StatusOr<std::vector<std::string>> MemoryFileSystem::List(
    const std::string& path) {
  MutexLock lock(mutex_);
  const std::string folder = Clean(path);
  if (!IsFolder(folder)) {
    return ErrnoStatus(files_.count(folder) ? ENOTDIR : ENOENT, path);
  }
  std::set<std::string> names;
  const auto add = [&](const std::string& name) {
    if (name != folder && ParentOf(name) == folder) {
      names.insert(name.substr(name.rfind('/') + 1));
    }
  };
  for (const auto& [name, content] : files_) add(name);
  for (const std::string& name : folders_) add(name);
  return std::vector<std::string>(names.begin(), names.end());
}

Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  return OkStatus();
}

}  // namespace headrace

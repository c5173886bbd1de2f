#include "base/remote/s3_file_system.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/files/remote_file_system.h"
#include "base/remote/remote_clients.h"
#include "base/remote/remote_reader.h"
#include "base/remote/s3_client.h"
#include "base/remote/s3_upload.h"
#include "base/remote/spooled_writer.h"
#include "base/sha256.h"

namespace headrace {
namespace {

using ClientOfS3 = std::shared_ptr<S3Client>;

// Names of one folder, and keys of one tree that are renamed: some gigabytes.
constexpr size_t kMostNames = size_t{1} << 24;
constexpr size_t kDeletedAtOnce = 1000;  // the most that DeleteObjects takes

class S3Source : public RangeSource {
 public:
  S3Source(ClientOfS3 client, S3Path path, std::string tag)
      : client_(std::move(client)),
        path_(std::move(path)),
        tag_(std::move(tag)) {}
  StatusOr<size_t> Fetch(uint64_t offset, absl::Span<char> out) override {
    return client_->Read(path_, tag_, offset, out);
  }

 private:
  const ClientOfS3 client_;
  const S3Path path_;
  const std::string tag_;
};

struct S3Target {
  ClientOfS3 client;
  S3Path path;

  bool is_bucket() const { return path.key.empty(); }
  S3Path of(std::string key) const { return {path.bucket, std::move(key)}; }
  // What keys of a folder begin with.
  std::string prefix() const { return is_bucket() ? "" : path.key + "/"; }
  std::string shown() const { return S3Client::Shown(path); }
};

// Pages of a list, until one is not `taken`.
Status ListPages(const S3Target& t, bool one_level, size_t most,
                 const std::function<StatusOr<bool>(const S3Page&)>& take) {
  std::string next;
  for (;;) {
    S3Call call{"GET", t.of("")};
    if (!next.empty()) call.query = {{"continuation-token", next}};
    if (one_level) call.query.emplace_back("delimiter", "/");
    call.query.emplace_back("encoding-type", "url");
    call.query.emplace_back("list-type", "2");
    if (most > 0) call.query.emplace_back("max-keys", absl::StrCat(most));
    call.query.emplace_back("prefix", t.prefix());
    HttpAnswer answer;
    HR_RETURN_IF_ERROR(t.client->Do(call, &answer));
    auto page = ParseS3Page(answer.body, t.prefix());
    if (page.ok() && !page->next.empty() && page->next == next) {
      page = DataLoss("the list does not go on");
    }
    if (!page.ok()) {
      return Status(page.status().code(),
                    absl::StrCat(t.shown(), ": ", page.status().message()));
    }
    HR_ASSIGN_OR_RETURN(const bool more, take(*page));
    if (!more || page->next.empty()) return OkStatus();
    next = page->next;
  }
}

// Whether keys begin with the folder's; of a bucket, whether it is there.
StatusOr<bool> IsFolder(const S3Target& t) {
  bool found = t.is_bucket();
  HR_RETURN_IF_ERROR(
      ListPages(t, false, 1, [&](const S3Page& page) -> StatusOr<bool> {
        found |= !page.keys.empty();
        return !found;
      }));
  return found;
}

// The answer to HEAD has no words: those of the first byte's are told.
Status WordsOf(const S3Target& t, const Status& head) {
  if (absl::IsUnavailable(head) || absl::IsDeadlineExceeded(head) ||
      absl::IsCancelled(head)) {
    return head;
  }
  HttpAnswer answer;
  S3Call call{"GET", t.path, {}, {"Range: bytes=0-0"}};
  const Status got = t.client->Do(call, &answer);
  return got.ok() || got.code() != head.code() ? head : got;
}

// `*tag`, unless null: which version of an object.
StatusOr<FileStat> StatOf(const S3Target& t, std::string* tag = nullptr) {
  FileStat folder;
  folder.is_directory = true;
  if (!t.is_bucket()) {
    HttpAnswer answer;
    const Status head = t.client->Do({"HEAD", t.path}, &answer);
    if (head.ok()) {
      auto stat = ParseS3Head(answer);
      if (tag != nullptr) *tag = std::string(answer.Header("etag"));
      if (stat.ok()) return stat;
      return Status(stat.status().code(),
                    absl::StrCat(t.shown(), ": ", stat.status().message()));
    }
    if (!absl::IsNotFound(head)) return WordsOf(t, head);
  }
  HR_ASSIGN_OR_RETURN(const bool found, IsFolder(t));
  if (found) return folder;
  return ErrnoStatus(ENOENT, t.shown());
}

// All keys of a folder, its marker first.
StatusOr<std::vector<std::string>> KeysIn(const S3Target& t) {
  std::vector<std::string> keys;
  HR_RETURN_IF_ERROR(
      ListPages(t, false, 0, [&](const S3Page& page) -> StatusOr<bool> {
        if (keys.size() + page.keys.size() > kMostNames) {
          return ResourceExhausted(t.shown(), ": it has more than ", kMostNames,
                                   " objects");
        }
        keys.insert(keys.end(), page.keys.begin(), page.keys.end());
        return true;
      }));
  return keys;
}

Status DeleteKey(const S3Target& t, const std::string& key) {
  HttpAnswer answer;
  return t.client->Do({"DELETE", t.of(key)}, &answer);
}

Status DeleteKeys(const S3Target& t, absl::Span<const std::string> keys) {
  for (; !keys.empty();
       keys.remove_prefix(std::min(keys.size(), kDeletedAtOnce))) {
    const auto some = keys.subspan(0, kDeletedAtOnce);
    const std::string xml = DeletionXml(some);
    S3Call call{"POST", t.of(""), {{"delete", ""}}};
    call.headers = {absl::StrCat("x-amz-checksum-sha256: ",
                                 absl::Base64Escape(BytesOf(Sha256Of(xml)))),
                    "x-amz-sdk-checksum-algorithm: SHA256",
                    "Content-Type: text/xml"};
    call.SetBody(xml);
    HttpAnswer answer;
    Status status = t.client->Do(call, &answer);
    if (status.ok()) {
      HR_RETURN_IF_ERROR(ParseDeletions(answer.body));
    } else if (absl::IsUnimplemented(status) ||
               absl::IsInvalidArgument(status)) {
      // A server that does not know it, or wants another sum.
      for (const std::string& key : some) {
        HR_RETURN_IF_ERROR(DeleteKey(t, key));
      }
    } else {
      return status;
    }
  }
  return OkStatus();
}

class S3Files : public RemoteFileSystem {
 public:
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/false));
    std::string tag;
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(t, &tag));
    if (stat.is_directory) return ErrnoStatus(EISDIR, path);
    return NewRemoteReader(
        std::make_shared<S3Source>(t.client, t.path, std::move(tag)), stat.size,
        path);
  }

  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/true));
    if (t.is_bucket()) return ErrnoStatus(EISDIR, path);
    S3Version base;
    bool there = false;
    if (mode == WriteMode::kTruncate) {
      const auto folder = IsFolder(t);
      if (folder.ok() && *folder) return ErrnoStatus(EISDIR, path);
      // Who may write need not be one who may list.
      if (!folder.ok() && !absl::IsPermissionDenied(folder.status())) {
        return folder.status();
      }
    } else {
      const auto stat = StatOf(t, &base.tag);
      if (!stat.ok() && !absl::IsNotFound(stat.status())) return stat.status();
      there = stat.ok();
      if (there && stat->is_directory) return ErrnoStatus(EISDIR, path);
      if (there) base.size = stat->size;
    }
    if (mode == WriteMode::kCreateNew) {
      if (there) return ErrnoStatus(EEXIST, path);
      HR_RETURN_IF_ERROR(PutEmpty(*t.client, t.path, /*only_new=*/true));
      there = true;
    }
    const uint64_t size = base.size;
    return NewSpooledWriter(NewS3Upload(t.client, t.path, std::move(base)),
                            size, path, /*unsent=*/!there);
  }

  StatusOr<FileStat> Stat(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/false));
    return StatOf(t);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    HR_ASSIGN_OR_RETURN(const S3Target a, Find(from, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const S3Target b, Find(to, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(a));
    if (a.is_bucket() || b.is_bucket()) {
      return Unimplemented(from, " -> ", to, ": a bucket is not renamed");
    }
    if (a.shown() == b.shown()) return OkStatus();
    if (stat.is_directory) return RenameFolder(a, b);
    HR_ASSIGN_OR_RETURN(const bool folder, IsFolder(b));
    if (folder) return ErrnoStatus(EISDIR, to);
    HR_RETURN_IF_ERROR(CopyObject(a.client, a.path, b.path));
    return DeleteKey(a, a.path.key);
  }

  Status Copy(const std::string& from, const std::string& to) override {
    HR_ASSIGN_OR_RETURN(const S3Target a, Find(from, /*write=*/false));
    HR_ASSIGN_OR_RETURN(const S3Target b, Find(to, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(a));
    HR_ASSIGN_OR_RETURN(const bool folder, IsFolder(b));
    if (stat.is_directory) return ErrnoStatus(EISDIR, from);
    if (folder) return ErrnoStatus(EISDIR, to);
    if (a.shown() == b.shown()) return OkStatus();
    return CopyObject(a.client, a.path, b.path);
  }

  Status Delete(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(t));
    if (stat.is_directory) return ErrnoStatus(EISDIR, path);
    return DeleteKey(t, t.path.key);
  }

  Status CreateDirectory(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/true));
    const auto stat = StatOf(t);
    if (stat.ok()) return ErrnoStatus(EEXIST, path);
    // (Of a bucket it is told that there is none.)
    if (!absl::IsNotFound(stat.status()) || t.is_bucket()) return stat.status();
    S3Target marker = t;
    marker.path.key = t.prefix();
    return PutEmpty(*t.client, marker.path, /*only_new=*/false);
  }

  Status DeleteDirectory(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(t));
    if (!stat.is_directory) return ErrnoStatus(ENOTDIR, path);
    if (t.is_bucket()) {
      return Unimplemented(path, ": a bucket is not deleted");
    }
    bool empty = true;
    HR_RETURN_IF_ERROR(
        ListPages(t, false, 2, [&](const S3Page& page) -> StatusOr<bool> {
          for (const std::string& key : page.keys) empty &= key == t.prefix();
          return empty;
        }));
    if (!empty) return ErrnoStatus(ENOTEMPTY, path);
    return DeleteKey(t, t.prefix());
  }

  Status DeleteTree(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(t));
    if (!stat.is_directory) return DeleteKey(t, t.path.key);
    // Folders' markers last, inner ones first: servers that keep folders refuse
    // those that are not empty.
    std::vector<std::string> markers;
    HR_RETURN_IF_ERROR(
        ListPages(t, false, 0, [&](S3Page page) -> StatusOr<bool> {
          const auto files = std::stable_partition(
              page.keys.begin(), page.keys.end(),
              [](const std::string& key) { return absl::EndsWith(key, "/"); });
          markers.insert(markers.end(), page.keys.begin(), files);
          page.keys.erase(page.keys.begin(), files);
          HR_RETURN_IF_ERROR(DeleteKeys(t, page.keys));
          if (markers.size() <= kMostNames) return true;
          return ResourceExhausted(path, ": it has more than ", kMostNames,
                                   " folders");
        }));
    std::reverse(markers.begin(), markers.end());
    return DeleteKeys(t, markers);
  }

  StatusOr<std::vector<std::string>> List(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const S3Target t, Find(path, /*write=*/false));
    std::vector<std::string> names;
    bool found = t.is_bucket();
    const std::string prefix = t.prefix();
    const auto add = [&](StringView name) {
      name.remove_prefix(prefix.size());
      if (absl::EndsWith(name, "/")) name.remove_suffix(1);
      // No path leads to what such keys stand for.
      if (name.empty() || name == "." || name == "..") return;
      if (absl::StrContains(name, "/")) return;
      names.emplace_back(name);
    };
    HR_RETURN_IF_ERROR(
        ListPages(t, true, 0, [&](const S3Page& page) -> StatusOr<bool> {
          found |= !page.keys.empty() || !page.prefixes.empty();
          for (const std::string& key : page.keys) add(key);
          for (const std::string& folder : page.prefixes) add(folder);
          if (names.size() <= kMostNames) return true;
          return ResourceExhausted(path, ": it has more than ", kMostNames,
                                   " names");
        }));
    if (!found) {
      HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(t));
      if (!stat.is_directory) return ErrnoStatus(ENOTDIR, path);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  Status SyncDirectory(const std::string& /*path*/) override {
    return OkStatus();  // S3 has stored what it has answered to
  }

 private:
  StatusOr<S3Target> Find(const std::string& path, bool write) {
    HR_RETURN_IF_ERROR(CheckRemoteFile(path, write));
    HR_ASSIGN_OR_RETURN(S3Path parsed, ParseS3Path(path));
    const auto make = []() -> StatusOr<ClientOfS3> {
      HR_ASSIGN_OR_RETURN(S3Settings settings, S3Settings::FromEnvironment());
      return std::make_shared<S3Client>(HttpClient::Shared(),
                                        std::move(settings));
    };
    HR_ASSIGN_OR_RETURN(ClientOfS3 client,
                        clients_.Find(S3Settings::Key(), make));
    return S3Target{std::move(client), std::move(parsed)};
  }

  // All is copied before the first is deleted.
  static Status RenameFolder(const S3Target& from, const S3Target& to) {
    if (absl::StartsWith(to.prefix(), from.prefix()) &&
        from.path.bucket == to.path.bucket) {
      return InvalidArgument(from.shown(), " -> ", to.shown(),
                             ": a folder is not moved into itself");
    }
    HR_ASSIGN_OR_RETURN(std::vector<std::string> keys, KeysIn(from));
    for (const std::string& key : keys) {
      const S3Path target = to.of(absl::StrCat(
          to.prefix(), StringView(key).substr(from.prefix().size())));
      Status copied = CopyObject(from.client, from.of(key), target);
      // Of a folder's marker, which servers of folders have no object for.
      if (absl::IsNotFound(copied) && absl::EndsWith(key, "/")) {
        copied = PutEmpty(*from.client, target, /*only_new=*/false);
      }
      HR_RETURN_IF_ERROR(copied);
    }
    std::reverse(keys.begin(), keys.end());  // folders behind what they hold
    return DeleteKeys(from, keys);
  }

  RemoteClients<S3Client> clients_;
};

const bool s3_is_registered = RegisterFileSystem("s3", S3FileSystem()).ok();

}  // namespace

FileSystem* S3FileSystem() {
  static FileSystem* const fs = new S3Files;
  return fs;
}

}  // namespace headrace

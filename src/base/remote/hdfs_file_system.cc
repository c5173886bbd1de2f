#include "base/remote/hdfs_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/remote_file_system.h"
#include "base/remote/hadoop_config.h"
#include "base/remote/hadoop_token.h"
#include "base/remote/remote_clients.h"
#include "base/remote/remote_reader.h"
#include "base/remote/spooled_writer.h"
#include "base/remote/webhdfs_client.h"
#include "base/sandbox.h"

namespace headrace {
namespace {

using ClientPtr = std::shared_ptr<WebHdfsClient>;

// What clients depend on beside the cluster.
constexpr const char* kVariables[] = {
    "HADOOP_CONF_DIR",  "HADOOP_HOME",           "HADOOP_TOKEN_FILE_LOCATION",
    "HADOOP_USER_NAME", "HEADRACE_HDFS_TIMEOUT", "HEADRACE_WEBHDFS"};
// How often the rest of an append is sent, whose begin arrived.
constexpr int kAppendTries = 5;

StatusOr<std::string> GivenToken(StringView authority) {
  const char* path = std::getenv("HADOOP_TOKEN_FILE_LOCATION");
  if (path == nullptr || *path == '\0') return std::string();
  const AdoptedSandbox outside;  // the process' own, not a model's
  HR_ASSIGN_OR_RETURN(const std::string bytes,
                      ReadWholeFile(PosixFileSystem(), path));
  StatusOr<std::string> token = std::string();
  const auto tokens = ParseHadoopTokens(bytes);
  if (tokens.ok()) {
    token = TokenFor(*tokens, authority);
  } else {
    token = tokens.status();
  }
  if (token.ok()) return token;
  return Status(token.status().code(),
                absl::StrCat(path, ": ", token.status().message()));
}

StatusOr<ClientPtr> MakeClient(const HdfsPath& path) {
  HR_ASSIGN_OR_RETURN(const HadoopConfig config,
                      HadoopConfig::FromEnvironment());
  WebHdfsOptions options;
  HR_ASSIGN_OR_RETURN(options.name_nodes, NameNodeAddresses(config, path));
  if (options.name_nodes.empty()) {
    return InvalidArgument(path.Cluster(), " has no NameNode");
  }
  options.user = HadoopUser();
  options.cluster = path.Cluster();
  HR_ASSIGN_OR_RETURN(options.token, GivenToken(path.authority));
  HR_ASSIGN_OR_RETURN(options.limits.patience,
                      PatienceOf("HEADRACE_HDFS_TIMEOUT"));
  return std::make_shared<WebHdfsClient>(HttpClient::Shared(),
                                         std::move(options));
}

StatusOr<FileStat> StatOf(WebHdfsClient& client, const std::string& path) {
  HR_ASSIGN_OR_RETURN(const std::string json,
                      client.Call("GET", path, {{"op", "GETFILESTATUS"}}));
  return ParseFileStatus(json);
}

class HdfsSource : public RangeSource {
 public:
  HdfsSource(ClientPtr client, std::string path)
      : client_(std::move(client)), path_(std::move(path)) {}
  StatusOr<size_t> Fetch(uint64_t offset, absl::Span<char> out) override {
    return client_->Read(path_, offset, out);
  }

 private:
  const ClientPtr client_;
  const std::string path_;
};

class HdfsUpload : public Upload {
 public:
  HdfsUpload(ClientPtr client, std::string path, uint64_t base)
      : client_(std::move(client)), path_(std::move(path)), base_(base) {}

  bool only_appends() const override { return true; }

  Status Send(const Spool& spool, uint64_t sent, uint64_t size,
              bool /*last*/) override {
    if (base_ + sent > 0) return SendRest(spool, sent, size);
    bool ignored = false;
    return client_->Write(
        "PUT", path_, {{"op", "CREATE"}, {"overwrite", "true"}}, size,
        [&](uint64_t offset, absl::Span<char> out) {
          return spool.Read(offset, out);
        },
        &ignored);
  }

 private:
  // Appends; where that breaks, goes on behind what has arrived.
  Status SendRest(const Spool& spool, uint64_t sent, uint64_t size) {
    for (int i = 0;; ++i) {
      bool begun = false;
      const Status status = client_->Write(
          "POST", path_, {{"op", "APPEND"}}, size - sent,
          [&](uint64_t offset, absl::Span<char> out) {
            return spool.Read(sent + offset, out);
          },
          &begun);
      const bool repeat =
          absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
      if (!repeat || !begun || i == kAppendTries) return status;
      HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(*client_, path_));
      if (stat.size < base_ + sent || stat.size > base_ + size) return status;
      sent = stat.size - base_;
      if (sent == size) return OkStatus();
    }
  }

  const ClientPtr client_;
  const std::string path_;
  const uint64_t base_;
};

class Hdfs : public RemoteFileSystem {
 public:
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/false));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(*p.client, p.path));
    if (stat.is_directory) return ErrnoStatus(EISDIR, path);
    return NewRemoteReader(std::make_shared<HdfsSource>(p.client, p.path),
                           stat.size, path);
  }

  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/true));
    uint64_t base = 0;
    bool there = false;
    if (mode == WriteMode::kAppend) {
      const auto stat = StatOf(*p.client, p.path);
      if (stat.ok() && stat->is_directory) return ErrnoStatus(EISDIR, path);
      if (!stat.ok() && !absl::IsNotFound(stat.status())) return stat.status();
      there = stat.ok();
      if (there) base = stat->size;
    }
    if (!there) {
      HR_RETURN_IF_ERROR(Create(p, mode == WriteMode::kTruncate));
    }
    return NewSpooledWriter(
        std::make_unique<HdfsUpload>(p.client, p.path, base), base, path);
  }

  StatusOr<FileStat> Stat(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/false));
    return StatOf(*p.client, p.path);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(from, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const HdfsPath target, ParseHdfsPath(to));
    if (p.cluster != target.Cluster()) {
      return Unimplemented(from, " -> ", to,
                           ": a file is not renamed from one cluster to "
                           "another");
    }
    bool repeated = false;
    const auto answer = p.client->Call("PUT", p.path,
                                       {{"op", "RENAME"},
                                        {"destination", target.path},
                                        {"renameoptions", "OVERWRITE"}},
                                       &repeated);
    if (repeated && absl::IsNotFound(answer.status()) &&
        StatOf(*p.client, target.path).ok()) {
      return OkStatus();  // done by the try whose answer was lost
    }
    HR_RETURN_IF_ERROR(answer.status());
    // A server that knows no options answers false where a file is in the way.
    if (!answer->empty()) {
      HR_ASSIGN_OR_RETURN(const bool done, ParseBoolean(*answer));
      if (!done) {
        return FailedPrecondition(from, " -> ", to, ": HDFS did not rename it");
      }
    }
    return OkStatus();
  }

  Status Delete(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(*p.client, p.path));
    if (stat.is_directory) return ErrnoStatus(EISDIR, path);
    return Remove(p, path, /*recursive=*/false);
  }

  Status CreateDirectory(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/true));
    const auto stat = StatOf(*p.client, p.path);
    if (stat.ok()) return ErrnoStatus(EEXIST, path);
    if (!absl::IsNotFound(stat.status())) return stat.status();
    HR_ASSIGN_OR_RETURN(const std::string json,
                        p.client->Call("PUT", p.path, {{"op", "MKDIRS"}}));
    HR_ASSIGN_OR_RETURN(const bool made, ParseBoolean(json));
    if (made) return OkStatus();
    return FailedPrecondition(path, ": HDFS did not make the directory");
  }

  Status DeleteDirectory(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(*p.client, p.path));
    if (!stat.is_directory) return ErrnoStatus(ENOTDIR, path);
    return Remove(p, path, /*recursive=*/false);
  }

  Status DeleteTree(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/true));
    return Remove(p, path, /*recursive=*/true);
  }

  StatusOr<std::vector<std::string>> List(const std::string& path) override {
    HR_ASSIGN_OR_RETURN(const Place p, Find(path, /*write=*/false));
    HR_ASSIGN_OR_RETURN(const std::string json,
                        p.client->Call("GET", p.path, {{"op", "LISTSTATUS"}}));
    HR_ASSIGN_OR_RETURN(const std::vector<HdfsEntry> entries,
                        ParseFileStatuses(json));
    std::vector<std::string> names;
    for (const HdfsEntry& entry : entries) {
      if (entry.name.empty()) return ErrnoStatus(ENOTDIR, path);
      names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Status SyncDirectory(const std::string& /*path*/) override {
    return OkStatus();  // the NameNode logs each change before it answers
  }

 private:
  struct Place {
    ClientPtr client;
    std::string path, cluster;
  };

  StatusOr<Place> Find(const std::string& path, bool write) {
    HR_RETURN_IF_ERROR(CheckRemoteFile(path, write));
    HR_ASSIGN_OR_RETURN(HdfsPath parsed, ParseHdfsPath(path));
    HR_ASSIGN_OR_RETURN(ClientPtr client,
                        clients_.Find(parsed.Cluster() + ValuesOf(kVariables),
                                      [&] { return MakeClient(parsed); }));
    return Place{std::move(client), parsed.path, parsed.Cluster()};
  }

  // An empty file, so that what cannot be written is told at once.
  static Status Create(const Place& p, bool overwrite) {
    bool sent = false;
    const Status made = p.client->Write(
        "PUT", p.path,
        {{"op", "CREATE"}, {"overwrite", overwrite ? "true" : "false"}}, 0,
        nullptr, &sent);
    return made;
  }

  static Status Remove(const Place& p, const std::string& path,
                       bool recursive) {
    bool repeated = false;
    HR_ASSIGN_OR_RETURN(
        const std::string json,
        p.client->Call(
            "DELETE", p.path,
            {{"op", "DELETE"}, {"recursive", recursive ? "true" : "false"}},
            &repeated));
    HR_ASSIGN_OR_RETURN(const bool done, ParseBoolean(json));
    if (done || repeated) return OkStatus();
    return ErrnoStatus(ENOENT, path);
  }

  RemoteClients<WebHdfsClient> clients_;
};

const bool hdfs_is_registered = [] {
  bool done = true;
  for (const char* scheme : {"hdfs", "webhdfs", "swebhdfs"}) {
    done &= RegisterFileSystem(scheme, HdfsFileSystem()).ok();
  }
  return done;
}();

}  // namespace

FileSystem* HdfsFileSystem() {
  static FileSystem* const fs = new Hdfs;
  return fs;
}

}  // namespace headrace

// hdfs:// against servers that answer as they are told: DataNodes that are
// dead, cut their answers or send a byte a second, NameNodes on standby or
// silent.
#include "base/remote/hdfs_file_system.h"

#include <chrono>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/cancellation.h"
#include "base/files/files.h"
#include "base/net/test_http_server.h"
#include "base/sandbox.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using Request = TestHttpServer::Request;
using Clock = std::chrono::steady_clock;

std::string FileOf(size_t length) {
  return HttpText(200, absl::StrCat("{\"FileStatus\":{\"length\":", length,
                                    ",\"modificationTime\":7,\"type\":"
                                    "\"FILE\"}}"));
}
std::string Redirect(StringView place, const Request& r) {
  return HttpText(307, "",
                  absl::StrCat("Location: http://", place, r.target, "\r\n"));
}
std::string Refusal(StringView exception, StringView message,
                    int status = 403) {
  return HttpText(
      status, absl::StrCat("{\"RemoteException\":{\"exception\":\"", exception,
                           "\",\"message\":\"", message, "\"}}"));
}
size_t NumberIn(const Request& r, StringView name) {
  const size_t at = r.target.find(absl::StrCat(name, "="));
  if (at == std::string::npos) return 0;
  return strtoull(r.target.c_str() + at + name.size() + 1, nullptr, 10);
}
std::string Bytes(size_t n) {
  std::string out(n, '\0');
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
  return out;
}
// What OPEN asks for.
std::string PartOf(const std::string& bytes, const Request& r) {
  return bytes.substr(NumberIn(r, "offset"), NumberIn(r, "length"));
}
// A port of this machine at which nobody listens.
std::string DeadPlace() {
  return TestHttpServer([](const Request&) { return std::string(); }).place();
}

// What servers and the test change and look at.
class SharedText {
 public:
  std::string Get() {
    const MutexLock lock(mutex_);
    return text_;
  }
  void Set(StringView text) {
    const MutexLock lock(mutex_);
    text_ = std::string(text);
  }
  void Add(StringView text) {
    const MutexLock lock(mutex_);
    text_.append(text.data(), text.size());
  }

 private:
  Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

class HdfsFiles : public testing::Test {
 protected:
  void SetUp() override {
    setenv("HADOOP_USER_NAME", "ann", 1);
    setenv("HEADRACE_HDFS_TIMEOUT", "20", 1);
    unsetenv("HADOOP_CONF_DIR");
    unsetenv("HADOOP_HOME");
    unsetenv("HADOOP_TOKEN_FILE_LOCATION");
  }
  void TearDown() override {
    unsetenv("HEADRACE_WEBHDFS");
    unsetenv("HADOOP_USER_NAME");
    unsetenv("HEADRACE_HDFS_TIMEOUT");
  }
  FileSystem* const fs_ = HdfsFileSystem();
};

TEST_F(HdfsFiles, ReadsByARedirectInRanges) {
  const std::string bytes = Bytes(3000000);
  TestHttpServer data(
      [&](const Request& r) { return HttpText(200, PartOf(bytes, r)); });
  TestHttpServer names([&](const Request& r) {
    return r.Has("op=OPEN") ? Redirect(data.place(), r) : FileOf(bytes.size());
  });
  const std::string path = "webhdfs://" + names.place() + "/a b/f%";
  EXPECT_EQ(*ReadWholeFile(fs_, path), bytes);
  EXPECT_TRUE(absl::StartsWith(names.requests()[0].target,
                               "/webhdfs/v1/a%20b/f%25?op=GETFILESTATUS&"
                               "user.name=ann"));
  auto file = *fs_->OpenToRead(path);
  EXPECT_EQ(file->size(), bytes.size());
  std::string part(1000, '\0');
  for (const uint64_t offset : {0u, 500u, 2999500u, 1700000u}) {
    const size_t n = *file->ReadSome(offset, absl::MakeSpan(part));
    EXPECT_EQ(part.substr(0, n), bytes.substr(offset, 1000));
  }
  EXPECT_EQ(*file->ReadSome(3000000, absl::MakeSpan(part)), 0);
  EXPECT_TRUE(absl::IsOutOfRange(file->Read(2999999, absl::MakeSpan(part))));
}

TEST_F(HdfsFiles, ReadsAheadInOrderEqualBytes) {
  const std::string bytes = Bytes(9000001);
  TestHttpServer data(
      [&](const Request& r) { return HttpText(200, PartOf(bytes, r)); });
  TestHttpServer names([&](const Request& r) {
    return r.Has("op=OPEN") ? Redirect(data.place(), r) : FileOf(bytes.size());
  });
  auto file = *fs_->OpenToRead("webhdfs://" + names.place() + "/f");
  std::string all, part(100000, '\0');
  while (const size_t n = *file->ReadSome(all.size(), absl::MakeSpan(part))) {
    all.append(part, 0, n);
  }
  EXPECT_TRUE(all == bytes);
  EXPECT_LT(data.requests().size(), 15);  // of 90 reads
}

TEST_F(HdfsFiles, PassesByADeadDataNode) {
  const std::string bytes = Bytes(1000), dead = DeadPlace();
  TestHttpServer data(
      [&](const Request& r) { return HttpText(200, PartOf(bytes, r)); });
  const std::string dead_port = dead.substr(dead.find(':') + 1);
  TestHttpServer names([&](const Request& r) {
    if (r.Has("op=GETFILESTATUS")) return FileOf(bytes.size());
    if (r.Has("op=GET_BLOCK_LOCATIONS")) {
      return HttpText(
          200,
          absl::StrCat(R"({"LocatedBlocks":{"locatedBlocks":[{"locations":[)"
                       R"({"ipAddr":"127.0.0.1","hostName":"a","infoPort":1,)"
                       R"("xferPort":2},{"ipAddr":"127.0.0.1","hostName":"b",)"
                       R"("infoPort":)",
                       dead_port, R"(,"xferPort":9866}]}]}})"));
    }
    const bool told = r.Has("excludedatanodes=127.0.0.1:9866");
    return Redirect(told ? data.place() : dead, r);
  });
  EXPECT_EQ(*ReadWholeFile(fs_, "webhdfs://" + names.place() + "/f"), bytes);
}

TEST_F(HdfsFiles, GoesOnBehindACutAnswer) {
  const std::string bytes = Bytes(5000);
  std::atomic<int> count{0};
  TestHttpServer data([&](const Request& r) {
    std::string part = PartOf(bytes, r);
    const size_t whole = part.size();
    if (++count <= 3) part.resize(whole / 2);
    // The second is cut without a word: its length says that it is whole.
    return HttpText(200, part, "", count == 2 ? part.size() : whole);
  });
  TestHttpServer names([&](const Request& r) {
    if (r.Has("op=OPEN")) return Redirect(data.place(), r);
    if (r.Has("op=GETFILESTATUS")) return FileOf(bytes.size());
    return Refusal("UnsupportedOperationException", "no");
  });
  EXPECT_EQ(*ReadWholeFile(fs_, "webhdfs://" + names.place() + "/f"), bytes);
  EXPECT_EQ(NumberIn(data.requests()[3], "offset"), 4375);
}

TEST_F(HdfsFiles, ReadsNoMoreThanItAskedFor) {
  TestHttpServer data(
      [&](const Request& r) { return HttpText(200, std::string(5000, 'x')); });
  TestHttpServer names([&](const Request& r) {
    return r.Has("op=OPEN") ? Redirect(data.place(), r) : FileOf(100);
  });
  setenv("HEADRACE_HDFS_TIMEOUT", "1", 1);
  const auto got = ReadWholeFile(fs_, "webhdfs://" + names.place() + "/f");
  EXPECT_TRUE(absl::IsUnavailable(got.status())) << got.status();
}

TEST_F(HdfsFiles, FileThatBecameShorterEnds) {
  std::atomic<size_t> size{100};
  TestHttpServer data([&](const Request& r) {
    size = 30;
    return HttpText(200, std::string(30, 'x'));
  });
  TestHttpServer names([&](const Request& r) {
    return r.Has("op=OPEN") ? Redirect(data.place(), r) : FileOf(size);
  });
  auto file = *fs_->OpenToRead("webhdfs://" + names.place() + "/f");
  std::string out(100, '\0');
  EXPECT_EQ(*file->ReadSome(0, absl::MakeSpan(out)), 30);
}

void Drip(TestHttpServer* const* server, int socket) {
  TestHttpServer::SendAll(socket,
                          "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
  while (!(*server)->stopping()) {
    TestHttpServer::SendAll(socket, "x");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

TEST_F(HdfsFiles, GivesUpAByteASecond) {
  TestHttpServer* self = nullptr;
  TestHttpServer data(TestHttpServer::Talk(
      [&](int socket, const Request&) { Drip(&self, socket); }));
  self = &data;
  TestHttpServer names([&](const Request& r) {
    if (r.Has("op=GETFILESTATUS")) return FileOf(100000);
    if (!r.Has("op=OPEN")) return Refusal("IOException", "no");
    if (r.Has("excludedatanodes")) {
      return Refusal("IOException", "No active nodes contain this block");
    }
    return Redirect(data.place(), r);
  });
  setenv("HEADRACE_HDFS_TIMEOUT", "1", 1);
  const std::string path = "webhdfs://" + names.place() + "/f";
  const auto begin = Clock::now();
  const auto got = ReadWholeFile(fs_, path);
  EXPECT_TRUE(absl::IsDeadlineExceeded(got.status())) << got.status();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(HdfsFiles, SilentNameNodeIsADeadline) {
  TestHttpServer* self = nullptr;
  TestHttpServer names(TestHttpServer::Talk([&](int, const Request&) {
    while (!self->stopping()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }));
  self = &names;
  setenv("HEADRACE_HDFS_TIMEOUT", "0.5", 1);
  const std::string path = "webhdfs://" + names.place() + "/f";
  const auto begin = Clock::now();
  const auto got = fs_->Stat(path);
  EXPECT_TRUE(absl::IsDeadlineExceeded(got.status())) << got.status();
  EXPECT_TRUE(absl::StrContains(got.status().message(), path));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(HdfsFiles, WorkThatIsStoppedWaitsNoLonger) {
  TestHttpServer* self = nullptr;
  TestHttpServer names(TestHttpServer::Talk([&](int, const Request&) {
    while (!self->stopping()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }));
  self = &names;
  const Deadline deadline(300);
  const auto begin = Clock::now();
  EXPECT_FALSE(fs_->Stat("webhdfs://" + names.place() + "/f").ok());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(HdfsFiles, AsksTheOtherNameNode) {
  TestHttpServer standby([&](const Request&) {
    return Refusal("StandbyException",
                   "Operation category READ is not supported in state standby");
  });
  TestHttpServer active([&](const Request&) { return FileOf(5); });
  const std::string dead = DeadPlace();
  setenv("HEADRACE_WEBHDFS",
         absl::StrCat(dead, ",", standby.url(), "/, ", active.url()).c_str(),
         1);
  EXPECT_EQ(fs_->Stat("hdfs://service/f")->size, 5);
  const size_t asked = standby.requests().size();
  EXPECT_EQ(fs_->Stat("hdfs://service/f")->size, 5);
  EXPECT_EQ(standby.requests().size(), asked);  // the active one is remembered
}

TEST_F(HdfsFiles, WritesInTwoSteps) {
  const std::string dead = DeadPlace();
  std::atomic<int> creates{0};
  SharedText content;  // of the one DataNode
  TestHttpServer data([&](const Request& r) {
    if (r.method == "POST") {
      content.Add(r.body);
      return HttpText(200, "");
    }
    content.Set(r.body);
    return HttpText(201, "");
  });
  TestHttpServer names([&](const Request& r) {
    if (r.Has("op=GETFILESTATUS")) return FileOf(content.Get().size());
    EXPECT_EQ(r.body, "");
    if (r.method == "PUT" && ++creates == 2) return Redirect(dead, r);
    return Redirect(data.place(), r);
  });
  const std::string path = "webhdfs://" + names.place() + "/new";
  auto file = *fs_->OpenToWrite(path, WriteMode::kTruncate);
  EXPECT_EQ(content.Get(), "");
  EXPECT_TRUE(file->WriteAt(3, "def").ok());
  EXPECT_TRUE(file->WriteAt(0, "abc").ok());
  EXPECT_TRUE(file->Sync().ok());  // its first DataNode is dead
  EXPECT_EQ(content.Get(), "abcdef");
  EXPECT_TRUE(absl::IsUnimplemented(file->WriteAt(0, "x")));
  EXPECT_TRUE(file->Append("ghi").ok());
  EXPECT_EQ(file->size(), 9);
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(content.Get(), "abcdefghi");
  EXPECT_FALSE(file->Append("x").ok());
  auto more = *fs_->OpenToWrite(path, WriteMode::kAppend);
  EXPECT_TRUE(more->Append("jk").ok());
  EXPECT_EQ(more->size(), 11);
  more.reset();
  EXPECT_EQ(content.Get(), "abcdefghijk");
}

TEST_F(HdfsFiles, AnAppendThatBreaksGoesOnBehindWhatArrived) {
  SharedText content;
  content.Set("abc");
  std::atomic<int> posts{0};
  TestHttpServer data([&](const Request& r) {
    if (++posts > 1) {
      content.Add(r.body);
      return HttpText(200, "");
    }
    content.Add(r.body.substr(0, 2));  // and the connection breaks
    return std::string();
  });
  TestHttpServer names([&](const Request& r) {
    return r.method == "GET" ? FileOf(content.Get().size())
                             : Redirect(data.place(), r);
  });
  auto file = *fs_->OpenToWrite("webhdfs://" + names.place() + "/f",
                                WriteMode::kAppend);
  EXPECT_TRUE(file->Append("defgh").ok());
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(content.Get(), "abcdefgh");
}

TEST_F(HdfsFiles, TellsErrorsByTheirClasses) {
  using Code = absl::StatusCode;
  const struct {
    StringView exception, message;
    Code code;
  } kRows[] = {
      {"FileNotFoundException", "File /f does not exist.", Code::kNotFound},
      {"AccessControlException", "Permission denied", Code::kPermissionDenied},
      {"FileAlreadyExistsException", "/f already exists", Code::kAlreadyExists},
      {"FileAlreadyExistsException", "Parent path is not a directory: /f",
       Code::kFailedPrecondition},
      {"PathIsNotEmptyDirectoryException", "/f", Code::kFailedPrecondition},
      {"DSQuotaExceededException", "The DiskSpace quota is exceeded",
       Code::kResourceExhausted},
      {"IllegalArgumentException", "Invalid path", Code::kInvalidArgument},
      {"LeaseExpiredException", "No lease", Code::kAborted},
      {"SomethingElse", "words", Code::kUnknown},
  };
  for (const auto& row : kRows) {
    TestHttpServer names(
        [&](const Request&) { return Refusal(row.exception, row.message); });
    const std::string path = "webhdfs://" + names.place() + "/f";
    const auto got = fs_->Stat(path);
    EXPECT_EQ(got.status().code(), row.code) << row.exception;
    EXPECT_EQ(got.status().message(),
              absl::StrCat(path, ": ", row.message, " (", row.exception, ")"));
    EXPECT_EQ(names.requests().size(), 1);
  }
}

TEST_F(HdfsFiles, WaitsForSafeModeToEnd) {
  std::atomic<int> count{0};
  TestHttpServer names([&](const Request&) {
    return ++count < 3 ? Refusal("SafeModeException",
                                 "Name node is in safe "
                                 "mode.")
                       : HttpText(200, R"({"boolean":true})");
  });
  EXPECT_TRUE(DeleteRecursively(fs_, "webhdfs://" + names.place() + "/f").ok());
  EXPECT_EQ(count, 3);
}

TEST_F(HdfsFiles, ALostAnswerOfADeletionIsNoError) {
  std::atomic<int> count{0};
  TestHttpServer names([&](const Request& r) {
    if (r.method == "GET") return FileOf(1);
    if (++count == 1) return std::string();  // done, and the answer lost
    return HttpText(200, R"({"boolean":false})");
  });
  EXPECT_TRUE(fs_->Delete("webhdfs://" + names.place() + "/f").ok());
}

TEST_F(HdfsFiles, RenamesOverwritingOrSaysThatItDidNot) {
  std::atomic<bool> old_server{false};
  TestHttpServer names([&](const Request& r) {
    EXPECT_TRUE(r.Has("destination=/b%20c&renameoptions=OVERWRITE"));
    return HttpText(200, old_server ? R"({"boolean":false})" : "");
  });
  const std::string at = "webhdfs://" + names.place();
  EXPECT_TRUE(fs_->Rename(at + "/a", at + "/b c").ok());
  old_server = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(fs_->Rename(at + "/a", at + "/b c")));
  EXPECT_TRUE(
      absl::IsUnimplemented(fs_->Rename(at + "/a", "webhdfs://other:1/b")));
}

TEST_F(HdfsFiles, ListsAndRefusesNamesThatLeadOut) {
  std::string name = "b";
  TestHttpServer names([&](const Request&) {
    return HttpText(
        200,
        absl::StrCat(
            R"({"FileStatuses":{"FileStatus":[{"pathSuffix":"z","type":)"
            R"("DIRECTORY","length":0,"modificationTime":0},)"
            R"({"pathSuffix":")",
            name, R"(","type":"FILE","length":3,"modificationTime":0}]}})"));
  });
  const std::string path = "webhdfs://" + names.place() + "/d";
  EXPECT_EQ(*fs_->List(path), (std::vector<std::string>{"b", "z"}));
  for (const char* bad : {"..", ".", "a/b"}) {
    name = bad;
    EXPECT_TRUE(absl::IsDataLoss(fs_->List(path).status())) << bad;
  }
  name = "";
  EXPECT_TRUE(absl::IsFailedPrecondition(fs_->List(path).status()));
}

TEST_F(HdfsFiles, FollowsRedirectsToNothingElse) {
  const std::string secret = JoinPath(testing::TempDir(), "hr_hdfs_secret");
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), secret, "secret").ok());
  TestHttpServer names([&](const Request& r) {
    if (r.Has("op=GETFILESTATUS")) return FileOf(6);
    return HttpText(307, "", absl::StrCat("Location: file://", secret, "\r\n"));
  });
  const auto got = ReadWholeFile(fs_, "webhdfs://" + names.place() + "/f");
  EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << got.status();
}

TEST_F(HdfsFiles, KerberosWithoutATicketIsToldSo) {
  TestHttpServer names([&](const Request& r) {
    return HttpText(401, "", "WWW-Authenticate: Negotiate\r\n");
  });
  const auto got = fs_->Stat("webhdfs://" + names.place() + "/f");
  EXPECT_TRUE(absl::IsPermissionDenied(got.status())) << got.status();
  EXPECT_TRUE(absl::StrContains(got.status().message(), "Kerberos"));
}

TEST_F(HdfsFiles, AServerOfSomethingElse) {
  TestHttpServer names(
      [&](const Request& r) { return HttpText(404, "<html>no</html>"); });
  const auto got = fs_->Stat("webhdfs://" + names.place() + "/f");
  EXPECT_TRUE(absl::IsFailedPrecondition(got.status())) << got.status();
  TestHttpServer other([&](const Request& r) { return HttpText(200, "[1]"); });
  EXPECT_TRUE(absl::IsDataLoss(
      fs_->Stat("webhdfs://" + other.place() + "/f").status()));
}

TEST_F(HdfsFiles, WrongPathsAndSettings) {
  for (const char* path :
       {"hdfs:///f", "hdfs://a@b/f", "hdfs://a\nb/f", "webhdfs://a?b/f"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(fs_->Stat(path).status())) << path;
  }
  setenv("HEADRACE_HDFS_TIMEOUT", "soon", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(fs_->Stat("hdfs://a/f").status()));
}

TEST_F(HdfsFiles, SandboxesReachNoOtherMachine) {
  TestHttpServer names([&](const Request&) { return FileOf(5); });
  const std::string path = "webhdfs://" + names.place() + "/f";
  SafetyPolicy policy;
  policy.allowed.Add(Reach::kReadsFiles);
  {
    const SandboxScope scope(std::make_shared<Sandbox>(policy, "a model"));
    EXPECT_TRUE(absl::IsPermissionDenied(fs_->Stat(path).status()));
  }
  policy.allowed.Add(Reach::kNetwork);
  const SandboxScope scope(std::make_shared<Sandbox>(policy, "a model"));
  EXPECT_TRUE(fs_->Stat(path).ok());
}

}  // namespace
}  // namespace headrace

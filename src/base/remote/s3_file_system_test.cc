// s3:// against servers that answer as they are told, and check signatures.
#include "base/remote/s3_file_system.h"

#include <chrono>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/cancellation.h"
#include "base/files/files.h"
#include "base/net/test_http_server.h"
#include "base/remote/aws_signature.h"
#include "base/sandbox.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using Asked = TestHttpServer::Request;
using Clock = std::chrono::steady_clock;

constexpr char kHead[] =
    "ETag: \"one\"\r\nLast-Modified: Wed, 12 Oct 2022 17:50:00 GMT\r\n";
const AwsCredentials kKeys{"AKID", "se/cret+", "token"};

std::string HeaderOf(const Asked& r, StringView name) {
  const size_t at = r.headers.find(absl::StrCat("\r\n", name, ": "));
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 4;
  return r.headers.substr(begin, r.headers.find("\r\n", begin) - begin);
}

// Whether the request is signed by kKeys for a region, as it arrived.
bool IsSigned(const Asked& r, StringView region) {
  AwsCall call{r.method};
  call.host = HeaderOf(r, "host");
  const size_t mark = std::min(r.target.find('?'), r.target.size());
  call.path = r.target.substr(0, mark);
  call.query = r.target.substr(std::min(mark + 1, r.target.size()));
  call.body_sum = HeaderOf(r, "x-amz-content-sha256");
  call.region = std::string(region);
  call.service = "s3";
  const std::string got = HeaderOf(r, "authorization");
  std::string names = got.substr(got.find("signedheaders=") + 14);
  names = names.substr(0, names.find(','));
  for (const StringView name : absl::StrSplit(names, ';')) {
    if (name == "host" || name == "x-amz-date" ||
        name == "x-amz-content-sha256" || name == "x-amz-security-token") {
      continue;
    }
    call.headers.push_back(absl::StrCat(name, ": ", HeaderOf(r, name)));
  }
  std::tm utc = {};
  if (strptime(HeaderOf(r, "x-amz-date").c_str(), "%Y%m%dt%H%M%Sz", &utc) ==
      nullptr) {
    return false;
  }
  const std::string expected = AwsHeaders(call, kKeys, timegm(&utc)).back();
  return absl::AsciiStrToLower(expected) == "authorization: " + got;
}

std::string ErrorText(int status, StringView code, StringView message = "no",
                      StringView headers = "", StringView more = "") {
  return HttpText(status,
                  absl::StrCat("<Error><Code>", code, "</Code><Message>",
                               message, "</Message>", more, "</Error>"),
                  headers);
}
std::string HeadText(size_t size) {
  return HttpText(200, "", kHead, static_cast<int64_t>(size));
}
std::string ListText(StringView inner) {
  return HttpText(
      200, absl::StrCat("<ListBucketResult>", inner, "</ListBucketResult>"));
}
std::string EmptyList() { return ListText("<KeyCount>0</KeyCount>"); }

std::string SomeBytes(size_t n) {
  std::string out(n, '\0');
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
  return out;
}
// "range: bytes=3-5"
size_t RangeBegin(const Asked& r) {
  return strtoull(HeaderOf(r, "range").c_str() + 6, nullptr, 10);
}
std::string PartText(const std::string& bytes, const Asked& r,
                     size_t cut = std::string::npos) {
  const std::string range = HeaderOf(r, "range");
  const size_t begin = RangeBegin(r);
  const size_t last =
      strtoull(range.c_str() + range.find('-') + 1, nullptr, 10);
  const std::string part = bytes.substr(begin, last + 1 - begin);
  return HttpText(
      206, StringView(part).substr(0, cut),
      absl::StrCat(kHead, "Content-Range: bytes ", begin, "-",
                   begin + part.size() - 1, "/", bytes.size(), "\r\n"),
      static_cast<int64_t>(part.size()));
}

class S3FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    Set("AWS_ACCESS_KEY_ID", kKeys.id);
    Set("AWS_SECRET_ACCESS_KEY", kKeys.secret);
    Set("AWS_SESSION_TOKEN", kKeys.session);
    Set("AWS_CONFIG_FILE", "/dev/null");
    Set("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    Set("AWS_REGION", "eu-north-1");
    Set("HEADRACE_S3_TIMEOUT", "20");
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  void Use(const TestHttpServer& server) {
    Set("AWS_ENDPOINT_URL", server.url());
  }
  FileSystem* const fs_ = S3FileSystem();
  std::vector<std::string> set_;
};

TEST_F(S3FilesTest, ReadsSignedInRanges) {
  const std::string bytes = SomeBytes(3000000);
  std::atomic<bool> all_signed{true};
  TestHttpServer server([&](const Asked& r) {
    all_signed = all_signed && IsSigned(r, "eu-north-1");
    return r.method == "HEAD" ? HeadText(bytes.size()) : PartText(bytes, r);
  });
  Use(server);
  const std::string path = "s3://bucket/a b/\xc3\xa4+%&'(=~?#";
  EXPECT_EQ(*ReadWholeFile(fs_, path), bytes);
  EXPECT_TRUE(all_signed);
  EXPECT_EQ(server.requests()[0].target,
            "/bucket/a%20b/%C3%A4%2B%25%26%27%28%3D~%3F%23");
  EXPECT_EQ(HeaderOf(server.requests()[1], "if-match"), "\"one\"");
  EXPECT_EQ(HeaderOf(server.requests()[1], "x-amz-security-token"), "token");
  const FileStat stat = *fs_->Stat(path);
  EXPECT_EQ(stat.mtime_ns, 1665597000000000000);
  auto file = *fs_->OpenToRead(path);
  std::string part(1000, '\0');
  for (const uint64_t offset : {0u, 500u, 2999500u, 1700000u}) {
    const size_t n = *file->ReadSome(offset, absl::MakeSpan(part));
    EXPECT_EQ(part.substr(0, n), bytes.substr(offset, 1000));
  }
  EXPECT_TRUE(absl::IsOutOfRange(file->Read(2999999, absl::MakeSpan(part))));
}

TEST_F(S3FilesTest, ReadsWithoutKeysUnsigned) {
  TestHttpServer server([&](const Asked& r) { return HeadText(5); });
  Use(server);
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}) {
    unsetenv(name);
  }
  EXPECT_EQ(fs_->Stat("s3://bucket/f")->size, 5);
  EXPECT_EQ(HeaderOf(server.requests()[0], "authorization"), "");
}

TEST_F(S3FilesTest, GoesOnBehindACutAnswerAndAfterTrouble) {
  const std::string bytes = SomeBytes(5000);
  std::atomic<int> count{0};
  TestHttpServer server([&](const Asked& r) {
    if (r.method == "HEAD") return HeadText(bytes.size());
    switch (++count) {
      case 1:
        return PartText(bytes, r, 1000);
      case 2:
        return ErrorText(503, "SlowDown", "Reduce your request rate");
      case 3:
        return std::string();
      case 4:
        return HttpText(502, "<html>");
      default:
        return PartText(bytes, r);
    }
  });
  Use(server);
  EXPECT_EQ(*ReadWholeFile(fs_, "s3://bucket/f"), bytes);
  EXPECT_EQ(RangeBegin(server.requests()[2]), 1000);
  EXPECT_EQ(count, 5);
}

TEST_F(S3FilesTest, ObjectsThatAreReplacedWhileTheyAreRead) {
  TestHttpServer server([&](const Asked& r) {
    return r.method == "HEAD" ? HeadText(100)
                              : ErrorText(412, "PreconditionFailed");
  });
  Use(server);
  const Status got = ReadWholeFile(fs_, "s3://bucket/f").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(got)) << got;
  EXPECT_TRUE(absl::StrContains(got.message(), "replaced while it was read"));
}

TEST_F(S3FilesTest, BytesThatWereNotAskedFor) {
  std::atomic<int> kind{0};
  TestHttpServer server([&](const Asked& r) {
    if (r.method == "HEAD") return HeadText(100);
    const std::string x(kind == 2 ? 5000 : 100, 'x');
    if (kind == 0) return HttpText(200, x);
    return HttpText(206, x,
                    kind == 1 ? "Content-Range: bytes 7-106/200\r\n"
                              : "Content-Range: bytes 0-99/100\r\n");
  });
  Use(server);
  Set("HEADRACE_S3_TIMEOUT", "0.5");
  const std::string path = "s3://bucket/f";
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(fs_, path).status()));
  kind = 1;
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(fs_, path).status()));
  kind = 2;
  EXPECT_TRUE(absl::IsUnavailable(ReadWholeFile(fs_, path).status()));
}

TEST_F(S3FilesTest, TellsErrorsByTheirCodes) {
  using Code = absl::StatusCode;
  const struct {
    int status;
    StringView code;
    Code expected;
  } kRows[] = {
      {404, "NoSuchBucket", Code::kNotFound},
      {403, "AccessDenied", Code::kPermissionDenied},
      {403, "InvalidAccessKeyId", Code::kPermissionDenied},
      {403, "SignatureDoesNotMatch", Code::kPermissionDenied},
      {400, "ExpiredToken", Code::kPermissionDenied},
      {400, "InvalidBucketName", Code::kInvalidArgument},
      {507, "QuotaExceeded", Code::kResourceExhausted},
      {501, "NotImplemented", Code::kUnimplemented},
  };
  for (const auto& row : kRows) {
    TestHttpServer server([&](const Asked& r) {
      // HEAD has no words.
      if (r.method == "HEAD") return HttpText(row.status, "");
      return ErrorText(row.status, row.code, "The words");
    });
    Use(server);
    const auto listed = fs_->List("s3://bucket/d");
    EXPECT_EQ(listed.status().code(), row.expected) << row.code;
    EXPECT_TRUE(absl::StrContains(
        listed.status().message(),
        absl::StrCat("s3://bucket/: The words (", row.code, ")")))
        << listed.status();
    if (row.status == 403) {
      EXPECT_EQ(fs_->Stat("s3://bucket/f").status().message(),
                absl::StrCat("s3://bucket/f: The words (", row.code, ")"));
    }
  }
}

TEST_F(S3FilesTest, FollowsABucketToItsRegionOnce) {
  TestHttpServer server([&](const Asked& r) {
    if (IsSigned(r, "ap-east-1")) return HeadText(5);
    return HttpText(301, "", "x-amz-bucket-region: ap-east-1\r\n");
  });
  Use(server);
  EXPECT_EQ(fs_->Stat("s3://bucket/f")->size, 5);
  EXPECT_EQ(fs_->Stat("s3://bucket/f")->size, 5);
  EXPECT_EQ(server.requests().size(), 3);
}

TEST_F(S3FilesTest, RegionsInWordsAndRegionsThatAreNone) {
  std::atomic<int> kind{0};
  TestHttpServer server([&](const Asked& r) {
    if (IsSigned(r, "sa-east-1")) return EmptyList();
    if (kind == 1) {
      return HttpText(301, "", "x-amz-bucket-region: evil.example/\r\n");
    }
    if (kind == 2) {  // in a circle
      return HttpText(307, "",
                      IsSigned(r, "eu-west-1")
                          ? "x-amz-bucket-region: eu-west-2\r\n"
                          : "x-amz-bucket-region: eu-west-1\r\n");
    }
    return ErrorText(400, "AuthorizationHeaderMalformed", "wrong region", "",
                     "<Region>sa-east-1</Region>");
  });
  Use(server);
  EXPECT_TRUE(fs_->List("s3://bucket")->empty());
  kind = 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(fs_->Stat("s3://bucket2/f").status()));
  kind = 2;
  EXPECT_TRUE(absl::IsFailedPrecondition(fs_->Stat("s3://bucket3/f").status()));
  EXPECT_LT(server.requests().size(), 20);
}

TEST_F(S3FilesTest, SignsByTheServersClock) {
  TestHttpServer server([&](const Asked& r) {
    if (absl::StartsWith(HeaderOf(r, "x-amz-date"), "20221012t")) {
      return EmptyList();
    }
    return ErrorText(403, "RequestTimeTooSkewed", "the clock",
                     "Date: Wed, 12 Oct 2022 17:50:00 GMT\r\n");
  });
  Use(server);
  EXPECT_TRUE(fs_->List("s3://bucket")->empty());
}

TEST_F(S3FilesTest, ListsPageByPage) {
  TestHttpServer server([&](const Asked& r) {
    if (r.Has("continuation-token=a%2Fb")) {
      return ListText(
          "<EncodingType>url</EncodingType>"
          "<Contents><Key>d/b%2Bc+d</Key></Contents><CommonPrefixes><Prefix>"
          "d/z/</Prefix></CommonPrefixes><Contents><Key>d/..</Key></Contents>");
    }
    return ListText(
        "<IsTruncated>true</IsTruncated><NextContinuationToken>a/b"
        "</NextContinuationToken><Contents><Key>d/</Key></Contents>"
        "<Contents><Key>d/a&amp;&#10;b</Key></Contents>"
        "<Contents><Key>d/z</Key></Contents>");
  });
  Use(server);
  EXPECT_EQ(*fs_->List("s3://bucket/d/"),
            (std::vector<std::string>{"a&\nb", "b+c d", "z"}));
  EXPECT_TRUE(server.requests()[0].Has(
      "/bucket/?delimiter=%2F&encoding-type=url&list-type=2&prefix=d%2F"));
}

TEST_F(S3FilesTest, ListsThatAreNone) {
  std::string inner;
  TestHttpServer server([&](const Asked& r) {
    return inner.empty() ? HttpText(200, "[1]") : ListText(inner);
  });
  Use(server);
  for (const char* text :
       {"", "<Contents><Key>other</Key></Contents>", "<Contents/>",
        "<IsTruncated>true</IsTruncated>",
        "<IsTruncated>true</IsTruncated><NextContinuationToken>a"
        "</NextContinuationToken><Contents><Key>d/a</Key></Contents>",
        "<CommonPrefixes><Prefix>d/a</Prefix></CommonPrefixes>",
        "<EncodingType>url</EncodingType><Contents><Key>d/%z1</Key></Contents>",
        "<EncodingType>url</EncodingType><Contents><Key>d/%00</Key>"
        "</Contents>"}) {
    inner = text;
    EXPECT_TRUE(absl::IsDataLoss(fs_->List("s3://bucket/d").status())) << text;
  }
}

TEST_F(S3FilesTest, WritesWholeObjects) {
  std::atomic<int> puts{0};
  std::atomic<bool> all_signed{true};
  TestHttpServer server([&](const Asked& r) {
    all_signed = all_signed && IsSigned(r, "eu-north-1");
    if (r.method == "GET") return EmptyList();
    if (++puts == 1) return ErrorText(500, "InternalError");
    return HttpText(200, "", "ETag: \"two\"\r\n");
  });
  Use(server);
  auto file = *fs_->OpenToWrite("s3://bucket/new", WriteMode::kTruncate);
  EXPECT_EQ(puts, 0);  // what was there stays until the new is whole
  EXPECT_TRUE(file->WriteAt(3, "def").ok());
  EXPECT_TRUE(file->WriteAt(0, "abc").ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(server.requests().back().body, "abcdef");
  EXPECT_TRUE(file->WriteAt(0, "x").ok());
  EXPECT_TRUE(file->Append("g").ok());
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(server.requests().back().body, "xbcdefg");
  EXPECT_EQ(puts, 3);
  EXPECT_TRUE(all_signed);
  // An empty file is one, too.
  EXPECT_TRUE(
      (*fs_->OpenToWrite("s3://bucket/e", WriteMode::kTruncate))->Close().ok());
  EXPECT_EQ(server.requests().back().target, "/bucket/e");
  EXPECT_EQ(puts, 4);
}

TEST_F(S3FilesTest, FailedPartsLeaveNothing) {
  std::atomic<int> parts{0};
  TestHttpServer server([&](const Asked& r) {
    if (r.Has("uploads=")) {
      return HttpText(200,
                      "<InitiateMultipartUploadResult><UploadId>u 1</UploadId>"
                      "</InitiateMultipartUploadResult>");
    }
    if (r.method == "GET") return EmptyList();
    if (r.method == "DELETE") return HttpText(204, "");
    if (++parts == 2) return ErrorText(403, "AccessDenied", "no more");
    return HttpText(200, "", "ETag: \"two\"\r\n");
  });
  Use(server);
  auto file = *fs_->OpenToWrite("s3://bucket/new", WriteMode::kTruncate);
  EXPECT_TRUE(file->WriteAt(65 << 20, "x").ok());
  const Status closed = file->Close();
  EXPECT_TRUE(absl::IsPermissionDenied(closed)) << closed;
  EXPECT_EQ(server.requests().back().method, "DELETE");
  EXPECT_EQ(server.requests().back().target, "/bucket/new?uploadId=u%201");
}

TEST_F(S3FilesTest, NewFilesAreNotThereYet) {
  std::atomic<bool> there{false};
  TestHttpServer server([&](const Asked& r) {
    if (r.method == "HEAD") return HttpText(404, "");
    if (r.method == "GET") return EmptyList();
    EXPECT_EQ(HeaderOf(r, "if-none-match"), "*");
    return there ? ErrorText(412, "PreconditionFailed") : HttpText(200, "");
  });
  Use(server);
  EXPECT_TRUE(fs_->OpenToWrite("s3://bucket/n", WriteMode::kCreateNew).ok());
  there = true;
  EXPECT_TRUE(absl::IsAlreadyExists(
      fs_->OpenToWrite("s3://bucket/n", WriteMode::kCreateNew).status()));
}

TEST_F(S3FilesTest, CopiesThatFailWithGoodStatus) {
  std::atomic<int> copies{0};
  TestHttpServer server([&](const Asked& r) {
    if (r.method == "HEAD") return HeadText(5);
    if (r.method == "GET") return EmptyList();
    if (r.method == "DELETE") return HttpText(204, "");
    EXPECT_EQ(HeaderOf(r, "x-amz-copy-source"), "bucket/a%20b");
    if (++copies == 1) return ErrorText(200, "InternalError");
    if (copies == 3) return ErrorText(200, "AccessDenied");
    return HttpText(200,
                    "<CopyObjectResult><ETag>\"x\"</ETag>"
                    "</CopyObjectResult>");
  });
  Use(server);
  EXPECT_TRUE(fs_->Rename("s3://bucket/a b", "s3://bucket/c").ok());
  EXPECT_EQ(server.requests().back().method, "DELETE");
  EXPECT_TRUE(absl::IsPermissionDenied(
      fs_->Rename("s3://bucket/a b", "s3://bucket/c")));
  EXPECT_EQ(server.requests().back().method, "PUT");  // nothing is deleted
}

TEST_F(S3FilesTest, DeletesOneByOneWhereAllAtOnceIsNotKnown) {
  TestHttpServer server([&](const Asked& r) {
    if (r.method == "HEAD") return HttpText(404, "");
    if (r.method == "POST") return ErrorText(400, "MissingContentMD5");
    if (r.method == "DELETE") return HttpText(204, "");
    return ListText(
        "<Contents><Key>d/a</Key></Contents>"
        "<Contents><Key>d/b/c</Key></Contents>");
  });
  Use(server);
  EXPECT_TRUE(DeleteRecursively(fs_, "s3://bucket/d").ok());
  const auto requests = server.requests();
  EXPECT_EQ(requests[requests.size() - 2].target, "/bucket/d/a");
  EXPECT_EQ(requests.back().target, "/bucket/d/b/c");
}

TEST_F(S3FilesTest, SilentServersAreADeadline) {
  TestHttpServer* self = nullptr;
  TestHttpServer server(TestHttpServer::Talk([&](int, const Asked&) {
    while (!self->stopping()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }));
  self = &server;
  Use(server);
  Set("HEADRACE_S3_TIMEOUT", "0.5");
  const auto begin = Clock::now();
  const Status got = fs_->Stat("s3://bucket/f").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(got)) << got;
  EXPECT_TRUE(absl::StrContains(got.message(), "s3://bucket/f"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
  Set("HEADRACE_S3_TIMEOUT", "60");
  const Deadline deadline(300);
  EXPECT_FALSE(fs_->Stat("s3://bucket/f").ok());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
}

TEST_F(S3FilesTest, ServersThatAreAway) {
  Set("HEADRACE_S3_TIMEOUT", "0.5");
  Set("AWS_ENDPOINT_URL",
      TestHttpServer([](const Asked&) { return std::string(); }).url());
  const Status got = fs_->Stat("s3://bucket/f").status();
  EXPECT_TRUE(absl::IsUnavailable(got)) << got;
}

TEST_F(S3FilesTest, SandboxesReachNoS3) {
  TestHttpServer server([&](const Asked&) { return HeadText(5); });
  Use(server);
  SafetyPolicy policy;
  policy.allowed.Add(Reach::kReadsFiles);
  {
    const SandboxScope scope(std::make_shared<Sandbox>(policy, "a model"));
    EXPECT_TRUE(absl::IsPermissionDenied(fs_->Stat("s3://bucket/f").status()));
  }
  policy.allowed.Add(Reach::kNetwork);
  const SandboxScope scope(std::make_shared<Sandbox>(policy, "a model"));
  EXPECT_TRUE(fs_->Stat("s3://bucket/f").ok());
}

}  // namespace
}  // namespace headrace

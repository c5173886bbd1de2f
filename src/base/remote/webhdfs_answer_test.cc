#include "base/remote/webhdfs_answer.h"

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "base/files/files.h"
#include "base/remote/hadoop_config.h"
#include "base/remote/hadoop_token.h"
#include "base/text/xml_value.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr char kStatus[] =
    R"({"FileStatus":{"accessTime":1,"blockSize":134217728,"length":24930,)"
    R"("modificationTime":1320171722771,"owner":"w","pathSuffix":"",)"
    R"("permission":"644","replication":1,"type":"FILE"}})";
constexpr char kStatuses[] =
    R"({"FileStatuses":{"FileStatus":[)"
    R"({"length":3,"modificationTime":5,"pathSuffix":"a\u00e4","type":"FILE"},)"
    R"({"length":0,"modificationTime":6,"pathSuffix":"d","type":"DIRECTORY"}]}})";
constexpr char kLocations[] =
    R"({"LocatedBlocks":{"fileLength":3,"locatedBlocks":[{"locations":[)"
    R"({"hostName":"one","ipAddr":"10.0.0.1","infoPort":50075,)"
    R"("infoSecurePort":50475,"xferPort":50010},)"
    R"({"hostName":"two","ipAddr":"10.0.0.2","infoPort":50075,)"
    R"("infoSecurePort":0,"xferPort":50010}]}]}})";
constexpr char kSite[] =
    R"(<?xml version="1.0"?><!-- a --><configuration>
<property><name>fs.defaultFS</name><value>hdfs://${name}</value></property>
<property><name>name</name><value>s&#49;</value></property>
<property><name>dfs.nameservices</name><value>s0, s1</value></property>
<property><name>dfs.ha.namenodes.s1</name><value>a, b</value></property>
<property><name>dfs.namenode.http-address.s1.a</name><value>h1:9870</value>
</property><property><name>dfs.namenode.http-address.s1.b</name>
<value><![CDATA[h2:9870]]></value></property></configuration>)";

// A token as Java writes it.
std::string Token(StringView id, StringView kind, StringView service) {
  const auto text = [](StringView s) {
    return absl::StrCat(std::string(1, static_cast<char>(s.size())), s);
  };
  return text("alias") + text(id) + text("pass") + text(kind) + text(service);
}
std::string TokenFile(const std::vector<std::string>& tokens) {
  std::string out = "HDTS";
  out += '\0';
  out += static_cast<char>(tokens.size());
  for (const std::string& t : tokens) out += t;
  return out + '\0';  // no secrets
}

TEST(WebHdfsAnswer, ReadsStatuses) {
  const FileStat stat = *ParseFileStatus(kStatus);
  EXPECT_EQ(stat.size, 24930);
  EXPECT_EQ(stat.mtime_ns, 1320171722771000000);
  EXPECT_FALSE(stat.is_directory);
  const auto list = *ParseFileStatuses(kStatuses);
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[0].name, "a\xc3\xa4");
  EXPECT_TRUE(list[1].stat.is_directory);
  EXPECT_TRUE(*ParseBoolean(R"({"boolean":true})"));
  EXPECT_FALSE(*ParseBoolean(R"({"boolean":false})"));
}

TEST(WebHdfsAnswer, RefusesWhatDoesNotFit) {
  for (const char* json :
       {"", "[]", "{}", "3", "null", R"({"FileStatus":[]})",
        R"({"FileStatus":{"length":-1,"modificationTime":1,"type":"FILE"}})",
        R"({"FileStatus":{"length":1e3,"modificationTime":1,"type":"FILE"}})",
        R"({"FileStatus":{"length":1,"modificationTime":9223372036854775807,)"
        R"("type":"FILE"}})",
        R"({"FileStatus":{"length":1,"modificationTime":1,"type":7}})"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseFileStatus(json).status())) << json;
    EXPECT_FALSE(ParseFileStatuses(json).ok());
    EXPECT_FALSE(ParseBoolean(json).ok());
  }
}

TEST(WebHdfsAnswer, FindsDataPorts) {
  EXPECT_EQ(*FindDataPort(kLocations, "two:50075"), "10.0.0.2:50010");
  EXPECT_EQ(*FindDataPort(kLocations, "10.0.0.1:50475"), "10.0.0.1:50010");
  EXPECT_TRUE(absl::IsNotFound(FindDataPort(kLocations, "two:50076").status()));
}

TEST(WebHdfsAnswer, CutAnywhereIsAnError) {
  for (const StringView whole : {kStatus, kStatuses, kLocations}) {
    for (size_t n = 0; n < whole.size(); ++n) {
      const StringView cut = whole.substr(0, n);
      EXPECT_FALSE(ParseFileStatus(cut).ok()) << n;
      EXPECT_FALSE(ParseFileStatuses(cut).ok()) << n;
      EXPECT_FALSE(FindDataPort(cut, "one:50075").ok()) << n;
    }
  }
  const StringView site = kSite;
  for (size_t n = 0; n < site.size(); ++n) {
    EXPECT_FALSE(ParseXml(site.substr(0, n)).ok()) << n;
  }
}

TEST(WebHdfsAnswer, ErrorsWithoutAReason) {
  HttpAnswer answer;
  answer.status = 503;
  answer.body = "<html>busy</html>";
  HdfsError error = ParseRemoteError(answer, "hdfs://a/f");
  EXPECT_TRUE(absl::IsUnavailable(error.status));
  EXPECT_EQ(error.trouble, HdfsTrouble::kRetry);
  answer.status = 404;
  answer.body = R"({"RemoteException":3})";
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ParseRemoteError(answer, "hdfs://a/f").status));
}

TEST(HadoopConfig, FindsNameNodes) {
  HadoopConfig config;
  ASSERT_TRUE(config.Add(kSite).ok());
  EXPECT_EQ(config.Get("fs.defaultFS"), "hdfs://s1");
  const std::vector<std::string> both = {"http://h1:9870", "http://h2:9870"};
  unsetenv("HEADRACE_WEBHDFS");
  EXPECT_EQ(*NameNodeAddresses(config, {"hdfs", "s1", "/f"}), both);
  EXPECT_EQ(*NameNodeAddresses(config, {"hdfs", "", "/f"}), both);
  EXPECT_FALSE(NameNodeAddresses(config, {"hdfs", "s0", "/f"}).ok());
  EXPECT_EQ(*NameNodeAddresses(config, {"hdfs", "h:8020", "/f"}),
            (std::vector<std::string>{"http://h:9870", "http://h:50070"}));
  EXPECT_EQ(*NameNodeAddresses(config, {"swebhdfs", "h", "/f"}),
            (std::vector<std::string>{"https://h:9871"}));
  EXPECT_FALSE(config.Add("<html/>").ok());
}

TEST(HadoopConfig, ValuesThatNameThemselvesEnd) {
  HadoopConfig config;
  ASSERT_TRUE(config
                  .Add("<configuration><property><name>a</name><value>${a}x"
                       "</value></property></configuration>")
                  .ok());
  EXPECT_FALSE(config.Get("a").empty());
}

TEST(ParseXml, RefusesWhatItCannotBound) {
  EXPECT_FALSE(ParseXml("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>").ok());
  EXPECT_FALSE(ParseXml("<a>&b;</a>").ok());
  EXPECT_FALSE(ParseXml("<a>&#xd800;</a>").ok());
  EXPECT_FALSE(ParseXml("<a></b>").ok());
  EXPECT_FALSE(ParseXml("<a/><b/>").ok());
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_FALSE(ParseXml(deep).ok());
  EXPECT_EQ(ParseXml("<x:a k='>' l=\"'\"> b&lt;<c/>d </x:a>")->text, "b<d");
}

TEST(HadoopToken, ReadsJavasFiles) {
  const std::string one = Token("id", "HDFS_DELEGATION_TOKEN", "10.0.0.1:8020");
  const std::string other = Token("x", "HDFS_DELEGATION_TOKEN", "ha-hdfs:s1");
  const auto tokens = *ParseHadoopTokens(
      TokenFile({one, Token("y", "YARN_AM_RM_TOKEN", "z"), other}));
  ASSERT_EQ(tokens.size(), 3);
  EXPECT_EQ(*TokenFor(tokens, "10.0.0.1:8020"),
            absl::WebSafeBase64Escape(one.substr(6)));  // without its alias
  EXPECT_EQ(*TokenFor(tokens, "s1"),
            absl::WebSafeBase64Escape(other.substr(6)));
  EXPECT_FALSE(TokenFor(tokens, "elsewhere").ok());
  EXPECT_EQ(*TokenFor({tokens[1]}, "s1"), "");
  EXPECT_EQ(*TokenFor({tokens[0]}, "elsewhere"), tokens[0].text);
  const std::string file = TokenFile({one, other});
  for (size_t n = 0; n + 1 < file.size(); ++n) {
    EXPECT_FALSE(ParseHadoopTokens(file.substr(0, n)).ok()) << n;
  }
  EXPECT_TRUE(absl::IsUnimplemented(
      ParseHadoopTokens(StringView("HDTS\x01\x05", 6)).status()));
  EXPECT_FALSE(ParseHadoopTokens(StringView("HDTS\0\x8c\x7f\xff", 8)).ok());
}

}  // namespace
}  // namespace headrace

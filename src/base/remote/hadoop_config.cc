#include "base/remote/hadoop_config.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/sandbox.h"
#include "base/text/xml_value.h"

namespace headrace {
namespace {

constexpr int kDeepestProperty = 20;  // as Hadoop's own limit

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "http://0.0.0.0:9870" is said by servers: it is no place to go to.
std::string AddressOf(StringView scheme, StringView place, StringView host) {
  const size_t colon = place.rfind(':');
  const StringView name = place.substr(0, colon);
  if (colon != StringView::npos && (name.empty() || name == "0.0.0.0")) {
    return absl::StrCat(scheme, "://", host, place.substr(colon));
  }
  return absl::StrCat(scheme, "://", place);
}

std::vector<std::string> GivenAddresses() {
  std::vector<std::string> out;
  for (StringView one : absl::StrSplit(Variable("HEADRACE_WEBHDFS"), ',')) {
    one = absl::StripAsciiWhitespace(one);
    while (absl::ConsumeSuffix(&one, "/")) {
    }
    if (one.empty()) continue;
    const bool whole = absl::StrContains(one, "://");
    out.push_back(absl::StrCat(whole ? "" : "http://", one));
  }
  return out;
}

// Of "dfs.namenode.http-address" and its secure twin, with `suffix`.
std::string ConfiguredAddress(const HadoopConfig& config, StringView suffix,
                              StringView host) {
  const bool secure = config.Get("dfs.http.policy") == "HTTPS_ONLY";
  const std::string place = config.Get(absl::StrCat(
      "dfs.namenode.", secure ? "https" : "http", "-address", suffix));
  if (place.empty()) return "";
  return AddressOf(secure ? "https" : "http", place, host);
}

std::vector<std::string> ServiceAddresses(const HadoopConfig& config,
                                          const std::string& service) {
  std::vector<std::string> out;
  const std::string nodes =
      config.Get(absl::StrCat("dfs.ha.namenodes.", service));
  for (StringView node : absl::StrSplit(nodes, ',', absl::SkipWhitespace())) {
    node = absl::StripAsciiWhitespace(node);
    std::string one = ConfiguredAddress(
        config, absl::StrCat(".", service, ".", node), service);
    if (!one.empty()) out.push_back(std::move(one));
  }
  if (out.empty()) {
    std::string one =
        ConfiguredAddress(config, absl::StrCat(".", service), service);
    if (!one.empty()) out.push_back(std::move(one));
  }
  return out;
}

bool IsService(const HadoopConfig& config, StringView name) {
  const std::string services = config.Get("dfs.nameservices");
  for (StringView s : absl::StrSplit(services, ',')) {
    if (absl::StripAsciiWhitespace(s) == name) return true;
  }
  return false;
}

StatusOr<std::vector<std::string>> HdfsAddresses(const HadoopConfig& config,
                                                 const HdfsPath& path) {
  std::vector<std::string> out = GivenAddresses();
  if (!out.empty()) return out;
  const std::string& authority = path.authority;
  if (IsService(config, authority)) {
    out = ServiceAddresses(config, authority);
    if (!out.empty()) return out;
    return InvalidArgument(
        "the name service ", authority,
        " has no dfs.namenode.http-address in hdfs-site.xml");
  }
  const std::string host(StringView(authority).substr(0, authority.rfind(':')));
  // The configuration is that of the default cluster.
  const std::string rpc = config.Get("dfs.namenode.rpc-address");
  const std::string standard = config.Get("fs.defaultFS");
  if (rpc == authority || standard == path.Cluster()) {
    std::string one = ConfiguredAddress(config, "", host);
    if (!one.empty()) return std::vector<std::string>{one};
  }
  // The ports of Hadoop 3 and of Hadoop 2.
  return std::vector<std::string>{absl::StrCat("http://", host, ":9870"),
                                  absl::StrCat("http://", host, ":50070")};
}

}  // namespace

StatusOr<HadoopConfig> HadoopConfig::FromEnvironment() {
  // Settings of the process, not files of a model's.
  const AdoptedSandbox outside;
  HadoopConfig config;
  std::string folder = Variable("HADOOP_CONF_DIR");
  if (folder.empty() && !Variable("HADOOP_HOME").empty()) {
    folder = JoinPath(Variable("HADOOP_HOME"), "etc/hadoop");
  }
  if (folder.empty()) return config;
  for (const char* name : {"core-site.xml", "hdfs-site.xml"}) {
    const std::string path = JoinPath(folder, name);
    const auto xml = ReadWholeFile(PosixFileSystem(), path);
    if (absl::IsNotFound(xml.status())) continue;
    HR_RETURN_IF_ERROR(xml.status());
    const Status added = config.Add(*xml);
    if (!added.ok()) return InvalidArgument(path, ": ", added.message());
  }
  return config;
}

Status HadoopConfig::Add(StringView xml) {
  HR_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(xml));
  if (root.name != "configuration") {
    return InvalidArgument("a configuration of Hadoop, not <", root.name, ">");
  }
  for (const XmlElement& property : root.children) {
    if (property.name != "property") continue;
    values_[std::string(property.Text("name"))] =
        std::string(property.Text("value"));
  }
  return OkStatus();
}

std::string HadoopConfig::Get(StringView name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : Expanded(found->second, 0);
}

std::string HadoopConfig::Expanded(StringView value, int depth) const {
  const size_t begin = value.find("${");
  const size_t end = value.find('}', begin == StringView::npos ? 0 : begin);
  if (begin == StringView::npos || end == StringView::npos ||
      depth > kDeepestProperty) {
    return std::string(value);
  }
  StringView name = value.substr(begin + 2, end - begin - 2);
  std::string inner;
  if (absl::ConsumePrefix(&name, "env.")) {
    inner = Variable(std::string(name).c_str());
  } else if (const auto found = values_.find(name); found != values_.end()) {
    inner = Expanded(found->second, depth + 1);
  }
  return absl::StrCat(value.substr(0, begin), inner,
                      Expanded(value.substr(end + 1), depth + 1));
}

StatusOr<HdfsPath> ParseHdfsPath(StringView path) {
  HdfsPath out;
  const size_t scheme = path.find("://");
  if (scheme == StringView::npos) {
    return InvalidArgument(path, " is no path of HDFS");
  }
  out.scheme = std::string(path.substr(0, scheme));
  StringView rest = path.substr(scheme + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  out.authority = std::string(rest.substr(0, slash));
  for (const char c : out.authority) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        StringView("-._:[]").find(c) != StringView::npos) {
      continue;
    }
    return InvalidArgument("'", out.authority, "' is no host (in ", path, ")");
  }
  for (StringView part :
       absl::StrSplit(rest.substr(slash), '/', absl::SkipEmpty())) {
    absl::StrAppend(&out.path, "/", part);
  }
  if (out.path.empty()) out.path = "/";
  return out;
}

StatusOr<std::vector<std::string>> NameNodeAddresses(const HadoopConfig& config,
                                                     const HdfsPath& path) {
  HdfsPath whole = path;
  if (path.authority.empty()) {
    const std::string standard = config.Get("fs.defaultFS");
    if (standard.empty()) {
      if (const auto given = GivenAddresses();
          !given.empty() && path.scheme == "hdfs") {
        return given;
      }
      return InvalidArgument(
          path.Cluster(), path.path,
          " names no NameNode, and no fs.defaultFS is set (core-site.xml in "
          "HADOOP_CONF_DIR)");
    }
    HR_ASSIGN_OR_RETURN(whole, ParseHdfsPath(standard));
    if (whole.authority.empty()) {
      return InvalidArgument("fs.defaultFS is ", standard,
                             ", which names no NameNode");
    }
  }
  if (whole.scheme == "hdfs") return HdfsAddresses(config, whole);
  if (whole.scheme == "webhdfs" || whole.scheme == "swebhdfs") {
    const bool secure = whole.scheme == "swebhdfs";
    if (IsService(config, whole.authority)) {
      return ServiceAddresses(config, whole.authority);
    }
    const bool has_port = whole.authority.find(':', whole.authority.rfind(']') +
                                                        1) != std::string::npos;
    return std::vector<std::string>{
        absl::StrCat(secure ? "https://" : "http://", whole.authority,
                     has_port ? ""
                     : secure ? ":9871"
                              : ":9870")};
  }
  return InvalidArgument("fs.defaultFS is ", whole.Cluster(),
                         ", which is no HDFS");
}

std::string HadoopUser() {
  std::string user = Variable("HADOOP_USER_NAME");
  if (!user.empty()) return user;
  passwd entry;
  passwd* found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return Variable("USER");
}

}  // namespace headrace

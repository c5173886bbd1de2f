// Where a cluster's NameNodes are: addresses, and Hadoop's configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

// The properties of core-site.xml and hdfs-site.xml.
class HadoopConfig {
 public:
  // Of the folder HADOOP_CONF_DIR, else HADOOP_HOME/etc/hadoop; none where
  // neither is there. InvalidArgument where a file is no such configuration.
  static StatusOr<HadoopConfig> FromEnvironment();
  // Adds the properties of one such file.
  Status Add(StringView xml);
  // "" where there is none. ${name} within a value is that property's, or
  // variable of the environment's (${env.NAME}).
  std::string Get(StringView name) const;

 private:
  std::string Expanded(StringView value, int depth) const;
  std::map<std::string, std::string, std::less<>> values_;
};

// A path taken apart: "hdfs://host:8020/a//b/" is "hdfs", "host:8020", "/a/b".
struct HdfsPath {
  std::string scheme, authority, path;
  // "hdfs://host:8020", for errors.
  std::string Cluster() const { return scheme + "://" + authority; }
};
// InvalidArgument for characters of control in the authority. ".." is not
// looked at: HDFS refuses it.
StatusOr<HdfsPath> ParseHdfsPath(StringView path);

// The addresses of HTTP ("http://host:9870") of the NameNodes of a cluster, in
// the order in which to ask them: of webhdfs:// (swebhdfs://: HTTPS) the
// authority's own; of hdfs:// those of HEADRACE_WEBHDFS (addresses, with commas
// between), of the configuration, or the host's at the ports 9870 and 50070.
// An authority may be a name service's; none is that of fs.defaultFS.
// InvalidArgument where none can be told.
StatusOr<std::vector<std::string>> NameNodeAddresses(const HadoopConfig& config,
                                                     const HdfsPath& path);

// HADOOP_USER_NAME, else the user of this process; "" where it has no name.
std::string HadoopUser();

}  // namespace headrace

// Models for tests of the manager: folders in memory, and loads that fail and
// wait as a test says.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "base/files/files.h"
#include "serving/manager/config.h"
#include "serving/manager/model_manager.h"

namespace headrace::serving {

inline constexpr char kGoldenModel[] = HR_GOLDEN_DIR "/saved_models/plain";

// Waits as long as a very slow machine may need.
inline bool Eventually(const std::function<bool()>& is_so) {
  for (int i = 0; i < 12'000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Folders of versions in memory. What is loaded is one small model, whatever
// lies in the folder.
class ManagerTest : public ::testing::Test {
 protected:
  ManagerTest() {
    static std::atomic<int> count{0};
    root_ = absl::StrCat("ram://manager_test/", count++);
    std::string local;
    files_ = *FileSystemFor("ram://x", &local);
    options_.file_system_poll_wait_seconds = -1;  // Poll by hand
    options_.load_retry_interval_micros = -1;
    options_.max_num_load_retries = 0;
    options_.log = [this](Severity, const std::string& text) {
      MutexLock lock(mutex_);
      log_.push_back(text);
    };
    options_.load = [this](const ServableId& id, const std::string& folder,
                           const ServableOptions& options) {
      return Load(id, folder, options);
    };
  }
  ~ManagerTest() override {
    {
      MutexLock lock(mutex_);
      for (auto& [id, wait] : waits_) wait = false;
    }
    manager_.reset();
  }

  std::string Base(const std::string& model) { return root_ + "/" + model; }
  void AddModel(const std::string& model) {
    ASSERT_TRUE(CreateDirectories(files_, LocalOf(Base(model))).ok());
  }
  void AddVersion(const std::string& model, const std::string& version,
                  size_t bytes = 0) {
    const std::string folder = LocalOf(Base(model) + "/" + version);
    ASSERT_TRUE(CreateDirectories(files_, folder).ok());
    if (bytes == 0) return;
    ASSERT_TRUE(WriteFileAtomically(files_, folder + "/weights",
                                    std::string(bytes, 'x'))
                    .ok());
  }
  void RemoveVersion(const std::string& model, const std::string& version) {
    ASSERT_TRUE(
        DeleteRecursively(files_, LocalOf(Base(model) + "/" + version)).ok());
  }
  static std::string LocalOf(const std::string& path) {
    std::string local;
    EXPECT_TRUE(FileSystemFor(path, &local).ok());
    return local;
  }

  std::string ModelText(const std::string& model,
                        const std::string& rest = "") {
    return absl::StrCat("config { name: '", model, "' base_path: '",
                        Base(model), "' model_platform: 'tensorflow' ", rest,
                        " }");
  }
  static ModelServerConfig ConfigFromText(const std::string& models) {
    auto config =
        ParseModelServerConfig("model_config_list { " + models + " }", "test");
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }
  Status Start(const std::string& models) {
    manager_ = std::make_unique<ModelManager>(options_);
    return manager_->Start(ConfigFromText(models));
  }
  Status Reload(const std::string& models) {
    return manager_->Reload(ConfigFromText(models));
  }

  StatusOr<ServablePtr> Load(const ServableId& id, const std::string& folder,
                             const ServableOptions& options) {
    {
      MutexLock lock(mutex_);
      ++loads_[{id.name, id.version}];
      folders_[{id.name, id.version}] = folder;
      tags_ = options.tags;
    }
    const auto key = std::make_pair(id.name, id.version);
    while (true) {
      {
        MutexLock lock(mutex_);
        if (!waits_[key]) break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    {
      MutexLock lock(mutex_);
      int& left = fails_[key];
      if (left > 0) {
        --left;
        return DataLoss("broken");
      }
    }
    return Servable::Load(id, kGoldenModel, {});
  }
  void Fail(const std::string& model, int64_t version, int times = 1 << 30) {
    MutexLock lock(mutex_);
    fails_[{model, version}] = times;
  }
  void Wait(const std::string& model, int64_t version, bool wait = true) {
    MutexLock lock(mutex_);
    waits_[{model, version}] = wait;
  }
  int Loads(const std::string& model, int64_t version) {
    MutexLock lock(mutex_);
    return loads_[{model, version}];
  }
  int LogLines(const std::string& text) {
    MutexLock lock(mutex_);
    int count = 0;
    for (const auto& line : log_) count += line.find(text) != line.npos;
    return count;
  }

  static ModelSpec Spec(const std::string& text) {
    ModelSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
    return spec;
  }
  // The version that answers; or the error's negative code.
  int64_t Answers(const std::string& spec) {
    const auto found = manager_->Find(Spec(spec));
    return found.ok() ? (*found)->id().version
                      : -static_cast<int64_t>(found.status().code());
  }
  // "2:AVAILABLE 1:END(broken)"
  std::string States(const std::string& model) {
    GetModelStatusResponse response;
    ModelSpec spec;
    spec.set_name(model);
    const Status s = manager_->StatusOf(spec, &response);
    if (!s.ok()) return std::string(s.message());
    std::string text;
    for (const auto& v : response.model_version_status()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", v.version(), ":",
                      ModelVersionStatus::State_Name(v.state()));
      if (v.status().error_code() != tensorflow::error::OK) {
        absl::StrAppend(&text, "(", v.status().error_message(), ")");
      }
    }
    return text;
  }
  bool Becomes(const std::string& model, const std::string& states) {
    const bool became = Eventually([&] { return States(model) == states; });
    EXPECT_EQ(States(model), states);
    return became;
  }

  std::string root_;
  FileSystem* files_;
  ManagerOptions options_;
  std::unique_ptr<ModelManager> manager_;

  using Key = std::pair<std::string, int64_t>;
  Mutex mutex_;
  std::map<Key, int> loads_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::string> folders_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, int> fails_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, bool> waits_ ABSL_GUARDED_BY(mutex_);
  Tags tags_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::serving

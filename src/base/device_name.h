// Names of devices: "/job:worker/replica:0/task:1/device:CPU:0", any part of
// which may be left open.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace headrace {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica, task;
  std::optional<std::string> type;  // in capitals
  std::optional<int> id;

  // Parts in any order; "*" leaves a part open. False where `text` is no name:
  // *name is then undefined.
  static bool Parse(StringView text, DeviceName* name);
  // All parts but the device's.
  static DeviceName OfTask(StringView job, int task);

  // The same with what is the device's left open.
  DeviceName Task() const;

  // Parts in their order, the open ones left out.
  std::string ToString() const;
  // Whether nothing is open.
  bool full() const { return job && replica && task && type && id; }
  bool SameTask(const DeviceName& o) const {
    return job == o.job && replica == o.replica && task == o.task;
  }
  // Whether `o`, a full name, is one of those that this one stands for.
  bool Covers(const DeviceName& o) const;
  // What is open here is as in `o`.
  DeviceName OrElse(const DeviceName& o) const;
  bool operator==(const DeviceName&) const = default;
};

}  // namespace headrace

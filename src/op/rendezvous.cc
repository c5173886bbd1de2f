#include "op/rendezvous.h"

#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/cancellation.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};

bool ReadIncarnation(StringView text, uint64_t* number) {
  if (text.empty() || text.size() > 16) return false;
  *number = 0;
  for (const char c : text) {
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return false;
    }
    *number = *number << 4 | digit;
  }
  return true;
}

bool ReadFullName(StringView text, DeviceName* name) {
  return DeviceName::Parse(text, name) && name->full();
}

}  // namespace

StatusOr<RendezvousKey> RendezvousKey::Parse(StringView text) {
  const std::vector<StringView> parts = absl::StrSplit(text, ';');
  RendezvousKey key;
  if (parts.size() != 5 || !ReadFullName(parts[0], &key.source) ||
      !ReadIncarnation(parts[1], &key.incarnation) ||
      !ReadFullName(parts[2], &key.destination) || parts[3].empty()) {
    return InvalidArgument("Invalid  rendezvous key: ", text);
  }
  key.edge = std::string(parts[3]);
  key.text = std::string(text);
  return key;
}

RendezvousKey RendezvousKey::Of(DeviceName source, uint64_t incarnation,
                                DeviceName destination, StringView edge) {
  RendezvousKey key;
  key.text = absl::StrFormat("%s;%016x;%s;%s;0:0", source.ToString(),
                             incarnation, destination.ToString(), edge);
  key.source = std::move(source);
  key.incarnation = incarnation;
  key.destination = std::move(destination);
  key.edge = std::string(edge);
  return key;
}

Status Receive(Rendezvous& rendezvous, const RendezvousKey& key,
               SentValue* value) {
  // Outlives this call where that is stopped.
  struct Word {
    Mutex mutex;
    CondVar changed;
    bool came ABSL_GUARDED_BY(mutex) = false;
  };
  while (true) {
    HR_ASSIGN_OR_RETURN(const bool there, rendezvous.TryReceive(key, value));
    if (there) return OkStatus();
    const auto word = std::make_shared<Word>();
    rendezvous.Await(key, [word] {
      {
        MutexLock lock(word->mutex);
        word->came = true;
      }
      word->changed.NotifyAll();
    });
    while (true) {
      {
        MutexLock lock(word->mutex);
        if (!word->came) word->changed.WaitFor(word->mutex, kLooksForStop);
        if (word->came) break;
      }
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }
}

}  // namespace headrace

#include "distributed/coordination/key_values.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "distributed/messages.h"
#include "distributed/service.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

Answer Found(const std::string& asked, const std::string& value) {
  GetKeyValueResponse response;
  response.mutable_kv()->set_key(asked);
  response.mutable_kv()->set_value(value);
  return AnswerOf(OkStatus(), WriteMessage(response));
}

void AnswerAll(
    const std::vector<std::pair<std::shared_ptr<ServerCall>, Answer>>& then) {
  for (const auto& [call, answer] : then) call->Finish(answer);
}

}  // namespace

StatusOr<std::string> KeyValues::NameOf(const std::string& key) const {
  if (key.size() > limits_.name) {
    return InvalidArgument("a key of ", key.size(), " bytes; at most ",
                           limits_.name, " may be");
  }
  const std::vector<StringView> parts =
      absl::StrSplit(key, '/', absl::SkipEmpty());
  return absl::StrJoin(parts, "/");
}

Status KeyValues::Keep(const std::string& name, std::string value,
                       std::vector<std::pair<Call, Answer>>* then) {
  const auto old = values_.find(name);
  const size_t before =
      old == values_.end() ? 0 : old->first.size() + old->second.size();
  const size_t after = name.size() + value.size();
  if (after > limits_.bytes || bytes_ - before > limits_.bytes - after) {
    return absl::ResourceExhaustedError(
        absl::StrCat("key ", name, " of ", after, " bytes: ", bytes_, " of ",
                     limits_.bytes, " are taken by others"));
  }
  if (old == values_.end() && values_.size() >= limits_.entries) {
    return absl::ResourceExhaustedError(
        absl::StrCat("key ", name, ": there are ", limits_.entries,
                     " keys, as many as may be"));
  }
  bytes_ = bytes_ - before + after;
  const auto [from, to] = waiting_.equal_range(name);
  for (auto at = from; at != to; ++at) {
    then->emplace_back(at->second.call, Found(at->second.asked, value));
  }
  waiting_.erase(from, to);
  values_[name] = std::move(value);
  return OkStatus();
}

void KeyValues::Forget(std::map<std::string, std::string>::iterator at) {
  bytes_ -= at->first.size() + at->second.size();
  values_.erase(at);
}

void KeyValues::Stop(const Status& why) {
  std::multimap<std::string, Waiting> waiting;
  {
    MutexLock lock(mutex_);
    stopped_ = why;
    waiting.swap(waiting_);
  }
  for (const auto& [name, w] : waiting) w.call->Finish(AnswerOf(why));
}

Status KeyValues::Insert(const InsertKeyValueRequest& request) {
  std::vector<std::pair<Call, Answer>> then;
  {
    HR_ASSIGN_OR_RETURN(const std::string name, NameOf(request.kv().key()));
    MutexLock lock(mutex_);
    if (!request.allow_overwrite() && values_.contains(name)) {
      return absl::AlreadyExistsError(
          absl::StrCat("key ", request.kv().key(), " already exists."));
    }
    HR_RETURN_IF_ERROR(Keep(name, request.kv().value(), &then));
  }
  AnswerAll(then);
  return OkStatus();
}

void KeyValues::Get(const GetKeyValueRequest& request, const Call& call) {
  const StatusOr<std::string> named = NameOf(request.key());
  if (!named.ok()) return call->Finish(AnswerOf(named.status()));
  const std::string& name = *named;
  std::optional<Answer> answer;
  {
    MutexLock lock(mutex_);
    if (const auto at = values_.find(name); at != values_.end()) {
      answer = Found(request.key(), at->second);
    } else if (!stopped_.ok()) {
      answer = AnswerOf(stopped_);
    } else if (waiting_.size() >= limits_.waiting) {
      answer = AnswerOf(absl::ResourceExhaustedError(
          absl::StrCat("key ", request.key(), ": ", limits_.waiting,
                       " calls wait for keys already")));
    } else {
      waiting_.emplace(name, Waiting{request.key(), call});
    }
  }
  if (answer) return call->Finish(*answer);
  call->OnCancel(
      [weak = weak_from_this(), name, held = std::weak_ptr<ServerCall>(call)] {
        const auto self = weak.lock();
        const auto gone = held.lock();
        if (!self || !gone) return;
        MutexLock lock(self->mutex_);
        const auto [from, to] = self->waiting_.equal_range(name);
        for (auto at = from; at != to; ++at) {
          if (at->second.call != gone) continue;
          self->waiting_.erase(at);
          return;
        }
      });
}

Status KeyValues::TryGet(const std::string& key, KeyValueEntry* kv) {
  HR_ASSIGN_OR_RETURN(const std::string name, NameOf(key));
  MutexLock lock(mutex_);
  const auto at = values_.find(name);
  if (at == values_.end()) return NotFound("Config key ", key, " not found.");
  kv->set_key(key);
  kv->set_value(at->second);
  return OkStatus();
}

Status KeyValues::Increment(const IncrementKeyValueRequest& request,
                            KeyValueEntry* kv) {
  std::vector<std::pair<Call, Answer>> then;
  {
    HR_ASSIGN_OR_RETURN(const std::string name, NameOf(request.key()));
    MutexLock lock(mutex_);
    int64_t number = 0;
    const auto at = values_.find(name);
    if (at != values_.end() && !absl::SimpleAtoi(at->second, &number)) {
      return FailedPrecondition("Failed to parse value \"",
                                at->second.substr(0, 100), "\" as an integer.");
    }
    if (__builtin_add_overflow(number, request.increment(), &number)) {
      return FailedPrecondition("The value of ", request.key(), " and ",
                                request.increment(), " have no sum of 64 bits");
    }
    HR_RETURN_IF_ERROR(Keep(name, absl::StrCat(number), &then));
    kv->set_key(request.key());
    kv->set_value(absl::StrCat(number));
  }
  AnswerAll(then);
  return OkStatus();
}

Status KeyValues::List(const std::string& directory,
                       GetKeyValueDirResponse* response) {
  HR_ASSIGN_OR_RETURN(const std::string name, NameOf(directory));
  const std::string prefix = absl::StrCat(name, "/");
  MutexLock lock(mutex_);
  for (auto at = values_.lower_bound(prefix);
       at != values_.end() && absl::StartsWith(at->first, prefix); ++at) {
    auto* kv = response->add_kv();
    kv->set_key(at->first);
    kv->set_value(at->second);
  }
  return OkStatus();
}

Status KeyValues::Delete(const DeleteKeyValueRequest& request) {
  HR_ASSIGN_OR_RETURN(const std::string name, NameOf(request.key()));
  MutexLock lock(mutex_);
  if (const auto at = values_.find(name); at != values_.end()) Forget(at);
  if (!request.is_directory()) return OkStatus();
  const std::string prefix = absl::StrCat(name, "/");
  for (auto at = values_.lower_bound(prefix);
       at != values_.end() && absl::StartsWith(at->first, prefix);) {
    Forget(at++);
  }
  return OkStatus();
}

std::map<std::string, Method> KeyValues::Methods(std::shared_ptr<KeyValues> v) {
  std::map<std::string, Method> methods;
  methods[coordination::kInsertKeyValue.path] =
      AtOnce<InsertKeyValueRequest, InsertKeyValueResponse>(
          [v](const InsertKeyValueRequest& in, auto*) {
            return v->Insert(in);
          });
  methods[coordination::kTryGetKeyValue.path] =
      AtOnce<TryGetKeyValueRequest, TryGetKeyValueResponse>(
          [v](const TryGetKeyValueRequest& in, auto* out) {
            return v->TryGet(in.key(), out->mutable_kv());
          });
  methods[coordination::kIncrementKeyValue.path] =
      AtOnce<IncrementKeyValueRequest, IncrementKeyValueResponse>(
          [v](const IncrementKeyValueRequest& in, auto* out) {
            return v->Increment(in, out->mutable_kv());
          });
  methods[coordination::kGetKeyValueDir.path] =
      AtOnce<GetKeyValueDirRequest, GetKeyValueDirResponse>(
          [v](const GetKeyValueDirRequest& in, auto* out) {
            return v->List(in.directory_key(), out);
          });
  methods[coordination::kDeleteKeyValue.path] =
      AtOnce<DeleteKeyValueRequest, DeleteKeyValueResponse>(
          [v](const DeleteKeyValueRequest& in, auto*) {
            return v->Delete(in);
          });
  methods[coordination::kGetKeyValue.path] = [v](const Call& call,
                                                 const Bytes& bytes) {
    GetKeyValueRequest request;
    const Status status = ReadMessage(bytes, &request);
    if (!status.ok()) return call->Finish(AnswerOf(status));
    v->Get(request, call);
  };
  return methods;
}

}  // namespace headrace::distributed

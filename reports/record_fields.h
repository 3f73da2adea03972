// The fields of the record's structs by their names in JSON: the one list of each.
#pragma once

#include "reports/fields.h"
#include "reports/record.h"

namespace stratagem::reports {

template <SameAs<TimelineEvent> Self, class Visit>
void each_field(Self& event, Visit visit) {
  visit("device", event.device);
  visit("kind", event.kind);
  visit("stage", event.stage);
  visit("micro_batch", event.micro_batch);
  visit("start_ms", event.start_ms);
  visit("end_ms", event.end_ms);
}

template <SameAs<Breakdown> Self, class Visit>
void each_field(Self& parts, Visit visit) {
  visit("compute", parts.compute);
  visit("communication_exposed", parts.communication_exposed);
  visit("communication_hidden", parts.communication_hidden);
  visit("wait", parts.wait);
  visit("bubble", parts.bubble);
  visit("optimizer", parts.optimizer);
  visit("input_copy", parts.input_copy);
  visit("other", parts.other);
}

template <SameAs<Bubble> Self, class Visit>
void each_field(Self& bubble, Visit visit) {
  visit("measured", bubble.measured);
  visit("ideal", bubble.ideal);
}

template <SameAs<CategoryMemory> Self, class Visit>
void each_field(Self& memory, Visit visit) {
  visit("peak", memory.peak);
  visit("at_peak", memory.at_peak);
  visit("formula", memory.formula);
}

template <SameAs<DeviceRecord> Self, class Visit>
void each_field(Self& device, Visit visit) {
  visit("rank", device.rank);
  visit("device", device.device);
  visit("breakdown_ms", device.breakdown_ms);
  visit("bubble", device.bubble);
  visit("peak_memory_bytes", device.peak_memory_bytes);
  visit("memory_bytes", device.memory_bytes);
}

template <SameAs<CollectiveCount> Self, class Visit>
void each_field(Self& count, Visit visit) {
  visit("calls", count.calls);
  visit("payload_bytes", count.payload_bytes);
  visit("wire_bytes", count.wire_bytes);
}

template <SameAs<Verdict> Self, class Visit>
void each_field(Self& verdict, Visit visit) {
  visit("oracle", verdict.oracle);
  visit("scope", verdict.scope);
  visit("max_relative_error", verdict.max_relative_error);
  visit("tolerance", verdict.tolerance);
  visit("passed", verdict.passed);
  visit("message", verdict.message);
}

template <SameAs<Verification> Self, class Visit>
void each_field(Self& verification, Visit visit) {
  using First = std::conditional_t<std::is_const_v<Self>, const Verdict, Verdict>;
  each_field(static_cast<First&>(verification), visit);
  visit("own_arithmetic", verification.own_arithmetic);
}

template <SameAs<Error> Self, class Visit>
void each_field(Self& error, Visit visit) {
  visit("rank", error.rank);
  visit("host", error.host);
  visit("last_action", error.last_action);
  visit("message", error.message);
}

template <SameAs<Conditions> Self, class Visit>
void each_field(Self& conditions, Visit visit) {
  visit("canary_before_ms", conditions.canary_before_ms);
  visit("canary_after_ms", conditions.canary_after_ms);
  visit("other_processes_cores", conditions.other_processes_cores);
}

template <SameAs<PredictionBasis> Self, class Visit>
void each_field(Self& basis, Visit visit) {
  visit("age_s", basis.age_s);
  visit("doubt", basis.doubt);
}

template <SameAs<Repetition> Self, class Visit>
void each_field(Self& repetition, Visit visit) {
  visit("index", repetition.index);
  visit("step_ms", repetition.step_ms);
  visit("per_rank_ms", repetition.per_rank_ms);
  visit("cpu_ms", repetition.cpu_ms);
  visit("devices", repetition.devices);
  visit("timeline", repetition.timeline);
  visit("predicted_ms", repetition.predicted_ms);
  visit("predicted_peak_memory_bytes", repetition.predicted_peak_memory_bytes);
  visit("predicted_from", repetition.predicted_from);
  visit("communication", repetition.communication);
  visit("kernels", repetition.kernels);
  visit("flops_per_step", repetition.flops_per_step);
  visit("mfu", repetition.mfu);
  visit("loss", repetition.loss);
  visit("verification", repetition.verification);
  visit("error", repetition.error);
  visit("conditions", repetition.conditions);
  visit("marks", repetition.marks);
  visit("counters", repetition.counters);
}

}  // namespace stratagem::reports

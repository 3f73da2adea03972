#include "strategies/context_parallel/attention_form.h"

namespace stratagem::context_parallel {

models::Registry<AttentionForm>& AttentionForm::registry() {
  static models::Registry<AttentionForm> forms("exchange of attention");
  return forms;
}

const AttentionForm& form_of(const strategies::StrategyOptions& options) {
  return AttentionForm::registry().find(options.context_exchange.name());
}

ContextOrder order_of(const strategies::StrategyOptions& options) {
  return form_of(options).order.value_or(options.context_order);
}

}  // namespace stratagem::context_parallel

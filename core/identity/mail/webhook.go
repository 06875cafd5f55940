package mail

// WebhookLink is the data of the message about a webhook. The webhook's URL is not in it, because its author chose it.
type WebhookLink struct {
	Link
	// Account is the name of the account. The message shows it as plainName returns it.
	Account string
	// Gone is set if the receiver answered 410, otherwise the webhook failed for too long.
	Gone bool
}

// WebhookDisabled returns the message that attempts have disabled a webhook.
func WebhookDisabled(to string, link WebhookLink) (*Message, error) {
	link.Account = plainName(link.Account)
	return write(to, "Webhook disabled at "+link.Service, "webhook-disabled", link)
}

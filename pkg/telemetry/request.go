package telemetry

import (
	"context"
	"log/slog"
)

// ofRequest is the context key of a request's attributes.
type ofRequest struct{}

// InRequest returns a context that carries the attributes of a request, such as its ids. A logger of NewLogger adds them to every
// line that is logged with this context or one derived from it.
func InRequest(ctx context.Context, attributes ...slog.Attr) context.Context {
	return context.WithValue(ctx, ofRequest{}, attributes)
}

// OfRequest returns the text of an attribute that InRequest stored in the context, empty for none.
func OfRequest(ctx context.Context, key string) string {
	attributes, _ := ctx.Value(ofRequest{}).([]slog.Attr)
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// requestHandler adds the attributes that InRequest stored in the context.
type requestHandler struct{ slog.Handler }

func (h requestHandler) Handle(ctx context.Context, line slog.Record) error {
	if attributes, in := ctx.Value(ofRequest{}).([]slog.Attr); in {
		line.AddAttrs(attributes...)
	}
	return h.Handler.Handle(ctx, line)
}

func (h requestHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attributes)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}

package publicuserapi

import (
	"context"
	"iter"
)

// Events lists the member's events. It needs the scope events:read.
func (c *Client) Events(query EventsQuery) *List[Event] { return list[Event](c, "/events", query) }

// Connections lists the member's connections. It needs the scope connections:read.
func (c *Client) Connections(query ConnectionsQuery) *List[Connection] {
	return list[Connection](c, "/connections", query)
}

// Achievements lists the earned achievements. It needs the scope achievements:read, as do all calls for achievements.
func (c *Client) Achievements(query EarnedAchievementsQuery) *List[Achievement] {
	return list[Achievement](c, "/achievements", query)
}

// AllAchievements lists all achievements, earned or not.
func (c *Client) AllAchievements(query AllAchievementsQuery) *List[Achievement] {
	return list[Achievement](c, "/achievements/all", query)
}

// List is a list of the member's data: [List.All] yields all items and loads pages as needed, [List.Page] returns one page.
type List[T any] struct {
	client *Client
	path   string
	query  any
}

// Page is a page of a list, as the API returns it.
type Page[T any] struct {
	Data       []T        `json:"data"`
	Pagination Pagination `json:"pagination"`
}

func list[T any](client *Client, path string, query any) *List[T] {
	return &List[T]{client, path, query}
}

// Page returns one page: the first for "", otherwise the page at a cursor (Pagination.NextCursor, PrevCursor).
func (l *List[T]) Page(ctx context.Context, cursor string) (*Page[T], error) {
	values, err := valuesOf(l.query)
	if err != nil {
		return nil, err
	}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	return get[Page[T]](ctx, l.client, l.path, values)
}

// Pages yields one page after the other, loaded as needed, and ends with the first error.
func (l *List[T]) Pages(ctx context.Context) iter.Seq2[*Page[T], error] {
	return func(yield func(*Page[T], error) bool) {
		for cursor := ""; ; {
			page, err := l.Page(ctx, cursor)
			if !yield(page, err) || err != nil || page.Pagination.NextCursor == nil {
				return
			}
			cursor = *page.Pagination.NextCursor
		}
	}
}

// All yields every item and ends with the first error.
func (l *List[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range l.Pages(ctx) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Data {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}
